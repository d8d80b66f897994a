"""Access lines of servers inside a program, while its loggers change."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest
from embedded_app import App
from harness import UVICORN
from harness.embedded import asked, port_of, served, server_of

pytestmark = pytest.mark.skipif(UVICORN, reason="these run Bridgehead by its own names")


class Keep(logging.Handler):
    """Keeps what it gets."""

    def __init__(self) -> None:
        super().__init__()
        self.arguments: list[object] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.arguments.append(record.args)

    @property
    def targets(self) -> list[str]:
        return [each[2] for each in self.arguments if isinstance(each, tuple)]


@pytest.fixture
def keep() -> Iterator[Keep]:
    handler = Keep()
    yield handler
    logging.getLogger("uvicorn.access").removeHandler(handler)


def test_of_several_servers_each_that_has_access_lines_gives_them(keep: Keep) -> None:
    async def main() -> None:
        loud, quiet = server_of(App(), log_level="info"), server_of(App(), log_level="info", access_log=False)
        async with served(loud), served(quiet):
            logging.getLogger("uvicorn.access").addHandler(keep)
            for server in (loud, quiet):
                await asked(port_of(server), f"/hello?{'loud' if server is loud else 'quiet'}")

    asyncio.run(main())
    assert keep.targets == ["/hello?loud"]
    (given,) = keep.arguments
    assert isinstance(given, tuple)
    assert given[0].startswith("127.0.0.1:")
    assert given[1:] == ("GET", "/hello?loud", "1.1", 200)


BESIDE_A_QUIET_ONE = """
import asyncio, bridgehead

async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 204})
    await send({"type": "http.response.body"})

async def ask(server, target):
    reader, writer = await asyncio.open_connection(*server.servers[0].sockets[0].getsockname())
    writer.write(f"GET {target} HTTP/1.1\\r\\nhost: a\\r\\nconnection: close\\r\\n\\r\\n".encode())
    await reader.read()
    writer.close()

async def served(**options):
    server = bridgehead.Server(bridgehead.Config(app, port=0, lifespan="off", **options))
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.001)
    return server, task

async def main():
    loud, first = await served()
    quiet, second = await served(log_level="warning", access_log=False)
    await ask(loud, "/meanwhile")
    quiet.should_exit = True
    await second
    await ask(loud, "/after")
    loud.should_exit = True
    await first

asyncio.run(main())
"""


def test_a_second_server_with_other_options_takes_no_lines_from_the_first() -> None:
    program = subprocess.run(
        [sys.executable, "-c", BESIDE_A_QUIET_ONE], capture_output=True, text=True, timeout=60, check=True
    )
    asked = [line.split('"')[1] for line in program.stdout.splitlines()]
    assert asked == ["GET /meanwhile HTTP/1.1", "GET /after HTTP/1.1"]


def test_loggers_are_as_they_were_when_nobody_serves_any_more() -> None:
    access = logging.getLogger("uvicorn.access")
    kinds = []

    async def main() -> None:
        async with served(server_of(App(), log_level="info")):
            kinds.append((type(access), repr(access)))

    asyncio.run(main())
    ((kind, shown),) = kinds
    assert issubclass(kind, logging.Logger)
    assert shown == "<Logger uvicorn.access (INFO)>"
    assert type(access) is logging.Logger
