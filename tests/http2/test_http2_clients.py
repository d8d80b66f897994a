"""Clients of HTTP/2 that people use; each is tried where it is installed."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import Iterator

import httpx
import pytest
from harness import APPS, UVICORN

from bridgehead.testing import running

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has HTTP/2 with another parser only")


@pytest.fixture(scope="module", params=[False, True], ids=["in the clear", "by TLS"])
def place(request: pytest.FixtureRequest) -> Iterator[str]:
    """An address, with nothing behind its last slash."""
    with running("wire_app:app", cwd=APPS, ssl_self_signed=request.param) as server:
        yield server.url


def said(*command: str) -> str:
    """By a program that is there, and ends well."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_curl_is_answered(place: str) -> None:
    spoken = "--http2" if place.startswith("https") else "--http2-prior-knowledge"
    shown = ("--write-out", " %{http_version}", "--noproxy", "*", "--insecure", "--silent", "--show-error")
    assert said("curl", spoken, *shown, f"{place}/hello") == "hello 2"
    assert said("curl", spoken, *shown, "--data", "x" * 500, f"{place}/echo") == "x" * 500 + " 2"


def test_nghttp_is_answered(place: str) -> None:
    shown = said("nghttp", "--no-verify-peer", "--verbose", "--multiply=5", f"{place}/hello")
    assert len(re.findall(r":status: 200", shown)) == 5
    assert "GOAWAY" in shown


def test_h2load_is_answered(place: str) -> None:
    shown = said("h2load", "--requests=200", "--clients=4", "--max-concurrent-streams=10", f"{place}/hello")
    assert "200 succeeded, 0 failed, 0 errored, 0 timeout" in shown


def test_httpx_is_answered_by_a_connection_for_many_requests(place: str) -> None:
    async def ask() -> None:
        secure = place.startswith("https")
        async with httpx.AsyncClient(
            http1=secure, http2=True, verify=False, trust_env=False, timeout=60
        ) as client:
            answers = await asyncio.gather(
                *(client.post(f"{place}/echo", content=b"%d" % number) for number in range(20))
            )
            assert [answer.content for answer in answers] == [b"%d" % number for number in range(20)]
            assert {answer.http_version for answer in answers} == {"HTTP/2"}

    asyncio.run(ask())
