"""Programs that start uvicorn by themselves run on Bridgehead unchanged: the CLIs of frameworks, gunicorn.

Run by `make frameworks`, which installs them.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from harness import Client, Server, WebSocket, request

FASTAPI = """
from fastapi import FastAPI
import uvicorn

app = FastAPI()


@app.get("/")
async def index():
    return {"server": uvicorn.Server.__module__}
"""
LITESTAR = """
from litestar import Litestar, get
import uvicorn


@get("/")
async def index() -> dict[str, str]:
    return {"server": uvicorn.Server.__module__}


app = Litestar([index])
"""
DJANGO = """
import asyncio, os, sys
from django.conf import settings

if not settings.configured:
    settings.configure(
        DEBUG=True,
        ROOT_URLCONF=__name__,
        ASGI_APPLICATION=f"{__name__}.application",
        INSTALLED_APPS=["bridgehead.contrib.django", "django.contrib.staticfiles"],
        STATIC_URL="/static/",
        STATICFILES_DIRS=[os.path.join(os.path.dirname(os.path.abspath(__file__)), "static")],
    )

from django.http import HttpResponse
from django.urls import path


async def index(request):
    await asyncio.sleep(0)
    return HttpResponse("bridgehead, async")


urlpatterns = [path("", index)]


async def application(scope, receive, send):
    from django.core.asgi import get_asgi_application

    await get_asgi_application()(scope, receive, send)


if __name__ == "__main__":
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
"""
CHANNELS = DJANGO.replace(
    "async def application(scope, receive, send):\n    from django.core.asgi import get_asgi_application\n\n"
    "    await get_asgi_application()(scope, receive, send)\n",
    """
def served():
    from channels.generic.websocket import AsyncWebsocketConsumer
    from channels.routing import ProtocolTypeRouter, URLRouter
    from django.core.asgi import get_asgi_application

    class Echo(AsyncWebsocketConsumer):
        async def receive(self, text_data):
            await self.send(text_data=f"{self.scope['path']}: {text_data}")

    sockets = URLRouter([path("ws/", Echo.as_asgi())])
    return ProtocolTypeRouter({"http": get_asgi_application(), "websocket": sockets})


async def application(scope, receive, send):
    global router
    router = globals().get("router") or served()
    await router(scope, receive, send)
""",
).replace('"django.contrib.staticfiles"', '"django.contrib.staticfiles", "channels"')
STREAM = """
import asyncio
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.routing import Route


async def events(request):
    async def forever():
        while True:
            yield {"data": "tick"}
            await asyncio.sleep(0.05)

    return EventSourceResponse(forever())


app = Starlette(routes=[Route("/", events)])
"""


class Program:
    """A program that serves, and what it says."""

    def __init__(self, words: list[str], folder: Path, environ: dict[str, str]) -> None:
        self.port = free_port()
        words = [each.replace("PORT", str(self.port)) for each in words]
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            words,
            cwd=folder,
            env={**os.environ, "PYTHONWARNINGS": "ignore", "NO_COLOR": "1", **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as pipe:
            for line in pipe:
                with self._changed:
                    self.lines.append(line)
                    self._changed.notify_all()
        with self._changed:
            self.lines.append("")
            self._changed.notify_all()

    def join(self) -> None:
        self._reader.join(20)

    def hears(self, pattern: str, seconds: float) -> str | None:
        def found() -> str | None:
            return next((line for line in self.lines if re.search(pattern, line)), None)

        with self._changed:
            self._changed.wait_for(lambda: found() or "" in self.lines, seconds)
        return found()

    def wait_line(self, pattern: str) -> str:
        line = self.hears(pattern, 40)
        assert line is not None, "".join(self.lines)
        return line

    def served_by(self) -> str | None:
        with Client(("127.0.0.1", self.port)) as client:
            client.send(request("/"))
            return client.read_response().header("server")

    def ask(self, target: str = "/") -> bytes:
        with Client(("127.0.0.1", self.port)) as client:
            client.send(request(target))
            body = client.read_response().body
            assert body is not None
            return body


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(words: list[str], folder: Path, **environ: str) -> Iterator[Program]:
    program = Program(words, folder, environ)
    try:
        yield program
        program.process.terminate()
        program.process.wait(20)
    finally:
        with suppress(ProcessLookupError):  # what the program has started and not ended
            os.killpg(program.process.pid, signal.SIGKILL)
        program.process.wait()
        program.join()


def command(name: str) -> str:
    found = shutil.which(name, path=str(Path(sys.executable).parent))
    assert found is not None, f"{name} is not installed: make frameworks installs it"
    return found


OURS = b'{"server":"bridgehead.compat.uvicorn.server"}'


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--port", "PORT"],
        ["run", "--port", "PORT", "--workers", "2"],
        ["dev", "--port", "PORT"],
    ],
    ids=["run", "run with workers", "dev"],
)
def test_the_cli_of_fastapi_serves(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "main.py").write_text(FASTAPI)
    compat = [sys.executable, "-m", "bridgehead.compat", command("fastapi")]
    with running([*compat, *words], tmp_path) as program:
        # What the CLI says by itself comes before there is anything to connect to.
        program.wait_line("Uvicorn running on|All 2 workers are ready")
        assert program.ask() == OURS
    assert "Traceback" not in "".join(program.lines)


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--port", "PORT"],
        ["run", "--port", "PORT", "--wc", "2"],
        ["run", "--port", "PORT", "--reload"],
    ],
    ids=["run", "run with workers", "reload"],
)
def test_the_cli_of_litestar_serves(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "app.py").write_text(LITESTAR)
    compat = [sys.executable, "-m", "bridgehead.compat", command("litestar")]
    with running([*compat, *words], tmp_path) as program:
        program.wait_line("Application startup complete")
        program.wait_line("running on")
        assert program.ask() == OURS
    assert "Traceback" not in "".join(program.lines)


@pytest.mark.parametrize(
    "worker",
    ["bridgehead.contrib.gunicorn.BridgeheadWorker", "bridgehead.compat.uvicorn.workers.UvicornWorker"],
)
def test_gunicorn_runs_our_worker(tmp_path: Path, worker: str) -> None:
    (tmp_path / "main.py").write_text(
        FASTAPI.replace("import uvicorn\n", "import sys\n").replace(
            "uvicorn.Server.__module__", '"bridgehead" if "bridgehead.server" in sys.modules else "another"'
        )
    )
    words = [command("gunicorn"), "-k", worker, "-w", "2", "-b", "127.0.0.1:PORT", "main:app"]
    with running(words, tmp_path) as program:
        program.wait_line("Application startup complete")
        assert program.ask() == b'{"server":"bridgehead"}'
    said = "".join(program.lines)
    assert program.process.returncode == 0, said
    assert "Traceback" not in said


def test_gunicorn_replaces_a_worker_that_had_its_requests_and_its_steps_may_be_overridden(
    tmp_path: Path,
) -> None:
    (tmp_path / "main.py").write_text(
        "from bridgehead.compat.uvicorn.workers import UvicornWorker\n"
        "class Worker(UvicornWorker):\n"
        "    async def _serve(self):\n"
        "        self.log.info('its own step')\n"
        "        await super()._serve()\n"
        "async def app(scope, receive, send):\n"
        "    if scope['type'] == 'http':\n"
        "        await send({'type': 'http.response.start', 'status': 200})\n"
        "        await send({'type': 'http.response.body', 'body': b'hello'})\n"
    )
    words = [command("gunicorn"), "-k", "main.Worker", "-b", "127.0.0.1:PORT", "--max-requests", "1"]
    with running([*words, "main:app"], tmp_path) as program:
        program.wait_line("its own step")
        first = program.wait_line("Booting worker").rsplit(maxsplit=1)[1]
        program.wait_line("Started server process")
        assert program.ask() == b"hello"
        program.wait_line("has had 1 requests: it ends")
        program.wait_line(f"Booting worker with pid: (?!{first}$)")
        assert program.ask() == b"hello"


def test_an_application_that_does_not_start_stops_gunicorn(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(
        "async def app(scope, receive, send):\n"
        "    await receive()\n"
        "    await send({'type': 'lifespan.startup.failed', 'message': 'no database'})\n"
    )
    worker = "bridgehead.contrib.gunicorn.BridgeheadWorker"
    words = [command("gunicorn"), "-k", worker, "-b", "127.0.0.1:PORT", "main:app"]
    with running(words, tmp_path) as program:
        program.wait_line("no database")
        assert program.process.wait(20) == 3


@pytest.mark.parametrize("words", [[], ["--reload"]], ids=["run", "reload"])
def test_a_plugin_has_litestar_run_us(tmp_path: Path, words: list[str]) -> None:
    plugged = LITESTAR.replace("Litestar([index])", "Litestar([index], plugins=[BridgeheadPlugin()])")
    (tmp_path / "app.py").write_text("from bridgehead.contrib.litestar import BridgeheadPlugin\n" + plugged)
    with running([command("litestar"), "run", "--port", "PORT", *words], tmp_path) as program:
        program.wait_line("Application startup complete")
        program.wait_line("running on")
        assert program.served_by() == "bridgehead"
    assert "Traceback" not in "".join(program.lines)


@pytest.mark.parametrize("words", [["--noreload"], []], ids=["one process", "reload"])
def test_djangos_runserver_serves_the_asgi_application_and_static_files(
    tmp_path: Path, words: list[str]
) -> None:
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "style.css").write_text("body {}")
    (tmp_path / "project.py").write_text(DJANGO)
    serve = [sys.executable, "project.py", "runserver", "127.0.0.1:PORT", "--skip-checks", *words]
    with running(serve, tmp_path, PYTHONUNBUFFERED="1") as program:
        program.wait_line("Starting development server at http://127.0.0.1")
        program.wait_line("Application startup complete|lifespan")
        assert program.ask() == b"bridgehead, async"
        assert program.ask("/static/style.css") == b"body {}"
        if not words:
            # Django begins to look once it serves: the first save may be what it finds there.
            for _ in range(20):
                (tmp_path / "project.py").write_text(DJANGO.replace("async", "later"))
                if program.hears("project.py changed, reloading", 2):
                    break
            program.wait_line("project.py changed, reloading")
    assert "Traceback" not in "".join(program.lines)


def test_an_asgi_application_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "project.py").write_text(DJANGO.replace('f"{__name__}.application"', '"nosuch.application"'))
    words = ["runserver", "127.0.0.1:PORT", "--skip-checks", "--noreload"]
    with running([sys.executable, "project.py", *words], tmp_path) as program:
        program.wait_line("ImproperlyConfigured: ASGI_APPLICATION 'nosuch.application' could not be loaded")


@pytest.mark.parametrize("words", [["--noreload"], []], ids=["one process", "reload"])
def test_djangos_runserver_serves_channels(tmp_path: Path, words: list[str]) -> None:
    assert "ProtocolTypeRouter" in CHANNELS
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "style.css").write_text("body {}")
    (tmp_path / "project.py").write_text(CHANNELS)
    serve = [sys.executable, "project.py", "runserver", "127.0.0.1:PORT", "--skip-checks", *words]
    with running(serve, tmp_path, PYTHONUNBUFFERED="1") as program:
        program.wait_line("Application startup complete|lifespan")
        with Client(("127.0.0.1", program.port)) as client:
            socket = WebSocket(client, "/ws/")
            socket.send_text("hello")
            assert socket.read_text() == "/ws/: hello"
        assert program.ask() == b"bridgehead, async"
        assert program.ask("/static/style.css") == b"body {}"
    assert "Traceback" not in "".join(program.lines)


@pytest.mark.parametrize("words", [[], ["--workers", "2"]], ids=["one process", "workers"])
def test_an_endless_event_stream_ends_with_the_server(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "main.py").write_text(STREAM)
    quiet = {"PYTHONWARNINGS": "ignore"}
    with Server("main:app", *words, cwd=tmp_path, env=quiet) as server, server.connect() as client:
        client.send(request("/"))
        client.read_until(b"data: tick")
        server.stop(timeout=10)
