"""What the system itself denies a server: connections that cannot be accepted, a network that is gone."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from harness import Server

HERE = Path(__file__).resolve().parent
# Fails as accept() may, once in each way, and then works.
SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>

static const int errors[] = {ECONNABORTED, EPROTO, EPERM, EMFILE, ENFILE, ENOBUFS, ENOMEM, ECONNABORTED};
static unsigned next;

int accept4(int socket, struct sockaddr *address, socklen_t *length, int flags) {
    if (next < sizeof errors / sizeof errors[0]) {
        errno = errors[next++];
        return -1;
    }
    int (*real)(int, struct sockaddr *, socklen_t *, int) = dlsym(RTLD_NEXT, "accept4");
    return real(socket, address, length, flags);
}
"""
NAMESPACE = ["unshare", "--user", "--map-root-user", "--net"]


def has_namespaces() -> bool:
    return (
        shutil.which(NAMESPACE[0]) is not None
        and subprocess.run([*NAMESPACE, "true"], check=False, capture_output=True).returncode == 0
    )


@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)
@pytest.mark.parametrize("runtime", ["fused", "threaded"])
def test_a_client_is_let_in_whatever_accept_has_failed_by_before(runtime: str, tmp_path: Path) -> None:
    source, shim = tmp_path / "shim.c", tmp_path / "shim.so"
    source.write_text(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, source, "-ldl"], check=True)
    options = ["--runtime", runtime, "--timeout-keep-alive", "60"]
    with Server("wire_app:app", *options, env={"LD_PRELOAD": str(shim)}) as server:
        client = server.connect()
        client.assert_open()
        server.wait_line("clients wait, since no connection can be accepted")
        client.assert_open()
        server.connect().assert_open()


@pytest.mark.skipif(not has_namespaces(), reason="needs a network that may be broken: user namespaces")
def test_a_client_whose_network_is_gone_is_found_out_with_nothing_more_to_send() -> None:
    ran = subprocess.run(
        [*NAMESPACE, sys.executable, str(HERE / "vanish.py")],
        check=False,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert ran.stdout == "ended\n", ran.stderr
