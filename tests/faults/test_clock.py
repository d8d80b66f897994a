"""A clock of the day that is set back and forth while the server runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest
from harness import Server, request

# Adds to the time of the day what a file says.
SHIM = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    int failed = syscall(SYS_clock_gettime, clock, time);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        char text[32] = {0};
        int file = open(getenv("CLOCK_OFFSET"), O_RDONLY | O_CLOEXEC);
        if (file >= 0) {
            if (read(file, text, sizeof text - 1) > 0) time->tv_sec += atol(text);
            close(file);
        }
    }
    return failed;
}
"""
NEAR = timedelta(minutes=20)


def patience() -> Iterator[None]:
    """Looks, for as long as it may take a slow machine."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        yield
        time.sleep(0.05)


@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)
@pytest.mark.parametrize("runtime", ["fused", "threaded"])
def test_the_date_follows_a_clock_that_is_set_back_and_forth(runtime: str, tmp_path: Path) -> None:
    source, shim, offset = (tmp_path / name for name in ("shim.c", "shim.so", "offset"))
    source.write_text(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, source], check=True)
    offset.write_text("0")
    env = {"LD_PRELOAD": str(shim), "CLOCK_OFFSET": str(offset)}
    with Server("wire_app:app", "--runtime", runtime, env=env) as server, server.connect() as client:

        def dates(hours: int) -> list[datetime]:
            """Of one answer on an old connection, one on a new one, and a refusal."""
            ahead = timedelta(hours=hours)
            client.send(request("/hello"))
            heads = [client.read_response(), server.ask("/hello")]
            with server.connect() as refused:
                refused.send(request("/hello", host=None))
                heads.append(refused.read_response())
            return [parsedate_to_datetime(head.header("date") or "") - ahead for head in heads]

        for hours in (0, -1, 2, -3, 0):
            offset.write_text(str(hours * 3600))
            assert any(all(abs(date - datetime.now(UTC)) < NEAR for date in dates(hours)) for _ in patience())
