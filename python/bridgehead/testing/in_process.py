"""A server in a process of its own: the command that users run.

Not what it serves, and no client.

Invariant: leaving the `with` block leaves no process behind, whatever happened.
"""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from bridgehead.testing.flags import flags_of
from bridgehead.testing.served import STARTUP_SECONDS, STOP_SECONDS, Served

# Without the advice for who sits at a terminal.
_RUNNING = re.compile(r" running on (.+?)(?: \(Press.*)?$")
# A developer's own settings are not the test's.
_SETTINGS = ("BRIDGEHEAD_", "UVICORN_")


class ServerProcess(Served):
    """`python -m bridgehead TARGET --port 0`, with more options by their names in `bridgehead.Config`."""

    def __init__(
        self,
        target: str,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        allow: Sequence[str] = (),
        **options: Any,
    ) -> None:
        """`env` is added to this process's; a line with a text of `allow` is no complaint."""
        super().__init__(allow=tuple(allow))
        if not options.keys() & {"port", "bind", "uds", "fd"}:
            options["port"] = 0
        # A line for each request of a load is not what a test reads.
        options.setdefault("access_log", False)
        # Under Kubernetes, as tests are run by some, it would serve on for a while.
        options.setdefault("drain_delay", 0)
        self._command = [sys.executable, "-m", "bridgehead", target, *flags_of(options)]
        self._environment = _inherited() | {"PYTHONUNBUFFERED": "1"} | dict(env or {})
        self._cwd = cwd
        # A socket that somebody has opened for it.
        self._descriptors = [int(options["fd"])] if options.get("fd") is not None else []
        self._process: subprocess.Popen[bytes] | None = None
        self._is_killed = False
        self._readers: list[threading.Thread] = []

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """To send it a signal, or to look at it."""
        if self._process is None:
            raise RuntimeError("the server has not been started: enter the `with` block")
        return self._process

    @property
    def pid(self) -> int:
        """Of the process that was started; with workers they are its children."""
        return self.process.pid

    def kill(self) -> None:
        """`kill -9`: a crash, after which nothing is asserted."""
        self._is_killed = True
        self.process.kill()
        self.process.wait(STOP_SECONDS)
        self._join()

    def stop(self) -> None:
        """SIGTERM, exit code 0 in time, and nothing to complain of; one that `kill()` has ended is over."""
        if self._is_killed:
            return
        self.logs.stops()
        self.process.terminate()
        try:
            code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            said = f"still running {STOP_SECONDS:g} s after SIGTERM; it said:\n{self.logs}"
            raise AssertionError(said) from None
        self._join()
        killed = "the server was ended by SIGKILL, and nobody called kill(): memory may have run out"
        assert code != -signal.SIGKILL, f"{killed}; it said:\n{self.logs}"
        assert code == 0, f"the server ended with exit code {code}; it said:\n{self.logs}"
        self._assert_no_complaints()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self._command,
            cwd=self._cwd,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=self._descriptors,
        )
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            reader = threading.Thread(target=self._read, args=(stream,), daemon=True)
            self._readers.append(reader)
        for reader in self._readers:
            reader.start()
        threading.Thread(target=self._end_logs, daemon=True).start()
        self._address = self.logs.wait(_address, "line that says where it listens", STARTUP_SECONDS)

    def _read(self, stream: IO[bytes]) -> None:
        for line in stream:
            self.logs.add(line.decode("utf-8", "backslashreplace").rstrip("\n"))

    def _end_logs(self) -> None:
        self.process.wait()
        self._join()
        self.logs.end()

    def _join(self) -> None:
        for reader in self._readers:
            # A process that the server has left behind may hold the pipe.
            reader.join(STOP_SECONDS)

    def _end(self) -> None:
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(STOP_SECONDS)
        self._join()
        for stream in (self._process.stdout, self._process.stderr):
            # One that a reader still has cannot be closed.
            if stream is not None and not any(reader.is_alive() for reader in self._readers):
                stream.close()


def _address(lines: Sequence[str]) -> str | None:
    found = [match[1] for line in lines if (match := _RUNNING.search(line))]
    return found[0].replace("unix socket ", "unix:") if found else None


def _inherited() -> dict[str, str]:
    """This process's variables, and the places that its modules come from: pytest's `pythonpath`, say."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS)}
    installed = {os.path.realpath(sys.prefix), os.path.realpath(sys.base_prefix)}
    ours = [
        place
        for place in sys.path
        if place and os.path.isdir(place) and not _is_below(os.path.realpath(place), installed)
    ]
    return kept | {"PYTHONPATH": os.pathsep.join(ours)} if ours else kept


def _is_below(place: str, folders: set[str]) -> bool:
    return any(place == folder or place.startswith(folder + os.sep) for folder in folders)
