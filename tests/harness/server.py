"""A server under test: a subprocess, its output, its end.

Not a fixture: tests that need their own options or signals start one themselves.
Invariant: leaving the `with` block never leaves a process behind.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import re
import select
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path
from signal import SIGINT, SIGTERM, Signals
from typing import IO, TYPE_CHECKING, Any, Self, TypeVar

from bridgehead.testing import logs, served
from harness.client import Client, Response, request
from harness.processes import of_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType

T = TypeVar("T")

# As the plugin has them.
STARTUP_SECONDS, STOP_SECONDS, COMPLAINTS = served.STARTUP_SECONDS, served.STOP_SECONDS, logs.COMPLAINTS

APPS = Path(__file__).resolve().parent.parent / "apps"
UVICORN = os.environ.get("BRIDGEHEAD_TEST_SERVER") == "uvicorn"

# Tests name a loop and a runtime as if both were one loop.
HAS_FUSED = not UVICORN and sys.platform == "linux"
LOOPS = {
    "asyncio": ("asyncio", "threaded"),
    "uvloop": ("uvloop", "threaded"),
    "fused": ("asyncio", "fused"),
    "fused-uvloop": ("uvloop", "fused"),
}
# So they do with coroutines driven by Rust: "uvloop-rust" is `--loop uvloop --task-impl rust`.
RUST = "-rust"


def uvloop_is_installed() -> bool:
    return importlib.util.find_spec("uvloop") is not None


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def _written_out(options: Sequence[str]) -> Iterator[str]:
    """What the harness's names of loops stand for."""
    before = ""
    for option in options:
        named = option.removesuffix(RUST)
        if before == "--loop" and named in LOOPS and not UVICORN:
            loop, runtime = LOOPS[named]
            yield from (loop, "--runtime", runtime)
            if named != option:
                yield from ("--task-impl", "rust")
        else:
            yield option
        before = option


def _waiting(pipe: IO[bytes]) -> int:
    """Bytes that nobody has read yet."""
    return 0 if pipe.closed else struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]


class Server:
    """`python -m bridgehead TARGET …` between `__enter__` and `__exit__`.

    `allow` names the complaints that this test provokes.
    `ready=False` starts without waiting for the address.
    `module` is run instead of `bridgehead`, with the same words.
    `below` are the words of a program that runs the command.
    """

    def __init__(
        self,
        target: str,
        *options: str,
        env: Mapping[str, str] | None = None,
        cwd: Path = APPS,
        allow: Sequence[str] = (),
        pass_fds: Sequence[int] = (),
        stdout: int | IO[bytes] = subprocess.PIPE,
        preexec_fn: Callable[[], object] | None = None,
        ready: bool = True,
        module: str = "uvicorn" if UVICORN else "bridgehead",
        below: Sequence[str] = (),
    ) -> None:
        self._command = [
            *below,
            *(sys.executable, "-m", module, target),
            *_written_out(options),
        ]
        given = {option.partition("=")[0] for option in options}
        if not given & {"--port", "--bind", "--uds", "--fd"}:
            self._command += ["--port", "0"]
        self._binds = max(1, sum(option.partition("=")[0] == "--bind" for option in options))
        # Only what a test sets may reach the server: a developer's own settings must not.
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("BRIDGEHEAD_", "UVICORN_", "PYTEST_"))
            and name not in ("PORT", "KUBERNETES_SERVICE_HOST", "WEB_CONCURRENCY")
        }
        self._environment = {**inherited, "PYTHONUNBUFFERED": "1", **(env or {})}
        self._cwd = cwd
        self._allow = tuple(allow)
        self._pass_fds = tuple(pass_fds)
        self._stdout = stdout
        self._preexec_fn = preexec_fn
        self._ready = ready
        self._changed = threading.Condition()
        self._output: dict[str, list[str]] = {"stdout": [], "stderr": []}
        self._readers: list[threading.Thread] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._clients: list[Client] = []
        self.addresses: list[str] = []

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command,
            cwd=self._cwd,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=self._stdout,
            stderr=subprocess.PIPE,
            pass_fds=self._pass_fds,
            preexec_fn=self._preexec_fn,
        )
        for name, stream in (("stdout", self._process.stdout), ("stderr", self._process.stderr)):
            if stream is not None:
                reader = threading.Thread(target=self._collect, args=(name, stream), daemon=True)
                reader.start()
                self._readers.append(reader)
        if self._ready:
            try:
                self.wait_ready()
            except BaseException:
                self._end()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and self.process.poll() is None:
                # One that says nothing to a close frame would be waited for.
                for client in self._clients:
                    if client.is_websocket:
                        client.close()
                self.stop()
        finally:
            self._end()
            # pytest keeps it to itself unless the test failed.
            print(f"--- stdout\n{self.stdout[-4000:]}\n--- stderr\n{self.stderr[-8000:]}")

    # --- what it said

    @property
    def stdout(self) -> str:
        with self._changed:
            return "".join(self._output["stdout"])

    @property
    def stderr(self) -> str:
        with self._changed:
            return "".join(self._output["stderr"])

    def wait_line(self, text: str, *, stream: str = "stderr", count: int = 1, timeout: float = 10.0) -> str:
        """The `count`th line of `stream` that holds `text`, once it is there."""

        def found() -> str | None:
            lines = [line for line in self._output[stream] if text in line]
            return lines[count - 1] if len(lines) >= count else None

        return self._wait(found, f"{text!r} on {stream}", timeout)

    def wait_ready(self) -> None:
        def found() -> list[str] | None:
            plain = re.sub(r"\x1b\[[0-9;]*m", "", "".join(self._output["stderr"]))
            lines = re.findall(r" running on (.+?)(?: \(Press.*)?\n", plain)
            return lines if len(lines) >= self._binds else None

        self.addresses = self._wait(found, "the address", STARTUP_SECONDS)

    def _wait(self, found: Callable[[], T | None], what: str, timeout: float) -> T:
        deadline = time.monotonic() + timeout
        with self._changed:
            while (value := found()) is None:
                alive = any(reader.is_alive() for reader in self._readers)
                left = deadline - time.monotonic()
                if left <= 0 or not alive:
                    said = "".join(self._output["stdout"]) + "--- stderr\n" + "".join(self._output["stderr"])
                    why = "after the deadline" if alive else f"before it ended with {self.process.poll()}"
                    raise AssertionError(f"no {what} {why}; the server said:\n--- stdout\n{said}")
                self._changed.wait(min(left, 0.5))
            return value

    def _collect(self, name: str, stream: IO[bytes]) -> None:
        came = select.poll()
        came.register(stream, select.POLLIN)
        rest = b""
        while True:
            came.poll()
            # Read with the lock held: who finds the pipe empty then has every line.
            with self._changed:
                data = os.read(stream.fileno(), 65_536)
                *lines, rest = (rest + data).split(b"\n")
                lines = [line + b"\n" for line in lines] + ([] if data or not rest else [rest])
                self._output[name] += [line.decode("utf-8", "backslashreplace") for line in lines]
                self._changed.notify_all()
                if not data:
                    return

    def _has_read_all(self) -> bool:
        """Whether nothing waits in the pipes. Their end may be far: a child may have them as well."""
        streams = (self._process.stdout, self._process.stderr) if self._process else ()
        return all(stream is None or _waiting(stream) == 0 for stream in streams)

    # --- how to reach it

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "the server was not started"
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def ports(self) -> list[int]:
        return [int(match[1]) for address in self.addresses if (match := re.search(r":(\d+)$", address))]

    @property
    def port(self) -> int:
        return self.ports[0]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def connect(self, **options: Any) -> Client:
        """A connection to the first address; closed with the server at the latest."""
        client = Client(("127.0.0.1", self.port), **options)
        self._clients.append(client)
        return client

    def ask(self, target: str, method: str = "GET", body: bytes = b"", **options: Any) -> Response:
        """One request on a connection of its own."""
        with Client(("127.0.0.1", self.port), **options) as client:
            client.send(request(target, method=method, body=body, headers=[("Connection", "close")]))
            return client.read_response(method=method)

    def note(self, name: str) -> Any:
        """The next value the application left under `name`; waits for it, inside the application."""
        answer = self.ask(f"/notes/{name}")
        assert answer.status == 200, f"the application left no note {name!r}: {answer}"
        return json.loads(answer.body)

    def notes(self, name: str) -> list[Any]:
        """All values under `name` that are there now, left where they are."""
        values = json.loads(self.ask(f"/notes/{name}?now").body)
        assert isinstance(values, list)
        return values

    def ring(self, name: str) -> None:
        """Let the handlers go on that wait for the bell `name`."""
        assert self.ask(f"/ring/{name}").status == 200

    def memory_peak(self) -> int:
        """The most resident memory the process has had so far, in bytes."""
        return self._memory("VmHWM")

    def memory(self) -> int:
        """The resident memory that it has, in bytes."""
        return self._memory("VmRSS")

    def _memory(self, name: str) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(rf"{name}:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) * 1024

    def threads_runtime(self, *, but: tuple[str, ...]) -> dict[str, int]:
        """Nanoseconds that each thread has run but those of these names, which look around now and then."""
        names, ran = of_threads(self.pid, "comm"), of_threads(self.pid, "schedstat")
        return {
            each: int(text.split()[0])
            for each, text in ran.items()
            if not names.get(each, "").startswith(but)
        }

    def has_thread(self, name: str) -> bool:
        """Whether a thread of the process is called so."""
        return name in of_threads(self.pid, "comm").values()

    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    # --- its end

    def signal(self, number: Signals) -> None:
        self.process.send_signal(number)

    def wait_exit(self, timeout: float = STOP_SECONDS) -> int:
        """The exit code, once the process has ended and its output is complete."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout} s; stderr:\n{self.stderr}") from None
        with self._changed:
            self._changed.wait_for(self._has_read_all, 5)
        return code

    def stop(self, number: Signals = SIGTERM, timeout: float = STOP_SECONDS) -> None:
        """Ask it to end, and prove that it ended well."""
        self.signal(number)
        self.assert_ended_well(timeout)

    def assert_ended_well(self, timeout: float = STOP_SECONDS) -> None:
        code = self.wait_exit(timeout)
        # uvicorn dies of the signal it caught, once it has shut down.
        assert code in ((0, -SIGTERM, -SIGINT) if UVICORN else (0,)), (code, self.stderr)
        for complaint in COMPLAINTS:
            assert complaint in self._allow or complaint not in self.stderr, self.stderr

    def _end(self) -> None:
        for client in self._clients:
            client.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        for reader in self._readers:
            reader.join(2)
        for stream in (self.process.stdout, self.process.stderr):
            # A grandchild may hold the other end, and a reader blocked on it must not block us.
            if stream is not None and not any(reader.is_alive() for reader in self._readers):
                stream.close()
