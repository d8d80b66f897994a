"""Real frameworks answer as they do under uvicorn: status lines, headers and bodies, byte for byte.

The order of headers, the server's own name, the date, the boundaries of chunks and whether a connection
is kept may differ, as may `expires` and the values of cookies, and a 204 has no `content-length` here. Run
by `make frameworks`, which installs its needs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Client, ClosedError, Server
from matrix_requests import DONE, REQUESTS

HERE = Path(__file__).resolve().parent
FRAMEWORKS = sorted(path.stem.removesuffix("_app") for path in (HERE / "apps").glob("*_app.py"))
SERVERS_OWN = {"date", "server", "transfer-encoding"}
NO_LENGTH = (
    "content-length",
    "0",
)  # of a 204: some frameworks send it, RFC 9110 §8.6 has none, and so have we
# Some headers are made of sets.
ENVIRONMENT = {"PYTHONWARNINGS": "ignore", "PYTHONHASHSEED": "0"}

Answer = tuple[str, list[tuple[str, str]], bytes | None]


def ask_all(port: int) -> dict[str, Answer]:
    """Every request on one connection, or on another where the server closes it."""
    answers: dict[str, Answer] = {}
    cookie = b""
    client = Client(("127.0.0.1", port))
    for name, data in REQUESTS.items():
        method = data.split(b" ", 1)[0].decode()
        if cookie and name == "a session again":
            data = data.replace(b"\r\n\r\n", b"\r\nCookie: " + cookie + b"\r\n\r\n", 1)
        try:
            client.send(data)
            response = client.read_response(method=method)
        except (ClosedError, OSError):
            client.close()
            client = Client(("127.0.0.1", port))
            client.send(data)
            try:
                response = client.read_response(method=method)
            except ClosedError:
                answers[name] = ("", [], None)
                continue
        while name == DONE and response.body == b"0":  # what is never done ends by the test's timeout
            client.send(data)
            response = client.read_response(method=method)
        headers = [(key.lower(), value) for key, value in response.headers]
        for key, value in headers:
            if key == "set-cookie":
                cookie = value.partition(";")[0].encode()
        line = f"{response.status} {response.reason}"
        answers[name] = (line, sorted(comparable(headers)), response.body)
        if ("connection", "close") in headers:
            client.close()
            client = Client(("127.0.0.1", port))
    client.close()
    return answers


def comparable(headers: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for name, value in headers:
        if name == "set-cookie":
            yield name, re.sub(r"^([^=]*)=[^;]*|(expires)=[^;]*", r"\1\2=…", value, flags=re.IGNORECASE)
        elif name == "expires":
            yield name, "…"
        elif name == "connection":
            continue  # whether it is kept is asked by the next request
        elif name not in SERVERS_OWN:
            yield name, value


@pytest.fixture(scope="module", params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def expected(framework: str) -> Iterator[dict[str, Answer]]:
    """What the framework answers under uvicorn."""
    command = [sys.executable, "-m", "uvicorn", f"{framework}_app:app", "--port", "0", "--no-access-log"]
    environment = {**os.environ, **ENVIRONMENT}
    with subprocess.Popen(command, cwd=HERE / "apps", stderr=subprocess.PIPE, env=environment) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if found := re.search(rb"http://127\.0\.0\.1:(\d+)", line):
                    yield ask_all(int(found[1]))
                    break
            else:
                pytest.fail(f"uvicorn did not start {framework}")
        finally:
            process.kill()


@pytest.mark.timeout(120)
def test_a_framework_answers_as_under_uvicorn(framework: str, expected: dict[str, Answer], loop: str) -> None:
    with Server(
        f"{framework}_app:app",
        *("--loop", loop),
        cwd=HERE / "apps",
        allow=["Traceback"],
        env=ENVIRONMENT,
    ) as server:
        came = ask_all(server.port)
        server.stop()
    pairs = {name: (as_due(expected[name]), came[name]) for name in REQUESTS}
    differ = [
        f"{name}:\n  uvicorn {shown(theirs, ours)}\n  here    {shown(ours, theirs)}"
        for name, (theirs, ours) in pairs.items()
        if theirs != ours
    ]
    assert not differ, "\n".join(differ)


def as_due(answer: Answer) -> Answer:
    """What uvicorn answers, without what no server may send."""
    line, headers, body = answer
    return (line, [each for each in headers if each != NO_LENGTH], body) if line[:3] == "204" else answer


def shown(answer: Answer, other: Answer) -> str:
    """What of an answer the other does not have."""
    status, headers, body = answer
    only = [header for header in headers if header not in other[1]]
    return f"{status} {only} {'the same body' if body == other[2] else repr(body)[:200]}"
