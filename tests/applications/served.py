"""An application as a process: started in its own environment, asked, stopped, and nothing of it left.

Not what is compared (`both.py`). `uvicorn` is what its environment has; `bridgehead` is put in its place by
`python -m bridgehead.compat`, with the same words after it.
Invariant: leaving the `with` block leaves no process of the application behind.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

from catalogue import CHROMIUM, Application

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE.parents[1] / "target" / "applications"
# A first import of a large application on a busy machine.
START_SECONDS = 240.0
ASK_SECONDS = 240.0
STOP_SECONDS = 60.0
LISTENING = "0A"
# A variable that says whose process it is.
MARK = "APPLICATION_UNDER_TEST"


class Served:
    """One application under one server, from `with` to its end."""

    def __init__(self, application: Application, server: str, folder: Path) -> None:
        self._application = application
        self._folder = folder
        self._said = folder / "said"
        self._python = ENVIRONMENTS / application.name / "bin" / "python"
        self.port = free_port()
        shutil.copytree(HERE / application.name, folder, dirs_exist_ok=True)
        first, *rest = application.words
        if server == "uvicorn":
            prefix = [first if first.endswith(".py") else str(self._python.parent / first)]
        else:
            prefix = ["-m", "bridgehead.compat", first]
        self._command = [str(self._python), *prefix, *(self._filled(each) for each in rest)]

    def _filled(self, text: str) -> str:
        return text.replace("PORT", str(self.port)).replace("FOLDER", str(self._folder))

    def environ(self) -> dict[str, str]:
        """What the application and its client find."""
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "BRIDGEHEAD"))
        }
        own = {name: self._filled(value) for name, value in self._application.environ.items()}
        home = self._folder / "home"
        home.mkdir(exist_ok=True)
        path = f"{self._python.parent}{os.pathsep}{kept['PATH']}"
        return (
            {**kept, "PATH": path, "HOME": str(home), "NO_COLOR": "1", "DO_NOT_TRACK": "1"}
            | own
            | {MARK: str(self._folder)}
        )

    def __enter__(self) -> Self:
        if (self._folder / "prepare.py").exists():
            subprocess.run([self._python, "prepare.py"], cwd=self._folder, env=self.environ(), check=True)
        with open(self._said, "wb") as said:
            self.process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env=self.environ(),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._wait_ready()
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()

    def _kill(self) -> None:
        for process in self._processes():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.process.wait()

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            if self._answers():
                return
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"it does not start: {self._command}\n{self.said[-4000:]}")
            time.sleep(0.1)

    def _answers(self) -> bool:
        """Whether it answers, be it that this is not how it is asked."""
        try:
            url = f"http://127.0.0.1:{self.port}{self._application.ready}"
            with urllib.request.urlopen(url, timeout=10):
                return True
        except urllib.error.HTTPError as answer:
            return answer.code < 500
        except OSError:
            return False

    @property
    def said(self) -> str:
        """Both streams so far."""
        return self._said.read_text(errors="replace")

    def ask(self) -> str:
        """What its client prints."""
        python, environ = str(self._python), self.environ()
        if self._application.client == CHROMIUM:  # ours speaks with browsers
            python = sys.executable
            environ["PYTHONPATH"] = os.pathsep.join([str(HERE), str(HERE.parent / "operations")])
        asked = subprocess.run(
            [python, "client.py", str(self.port)],
            cwd=self._folder,
            env=environ,
            capture_output=True,
            text=True,
            timeout=ASK_SECONDS,
        )
        assert asked.returncode == 0, (
            f"the client failed: {asked.stderr[-4000:]}\n--- said\n{self.said[-4000:]}"
        )
        return asked.stdout

    def stop(self) -> int:
        """Tell it to end; its exit code."""
        self.process.terminate()
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it does not end in {STOP_SECONDS:.0f} s\n{self.said[-4000:]}") from None

    def is_ours(self) -> bool:
        """Whether Bridgehead's library is in a process that listens on the port."""
        inodes = set(_listening(self.port))
        holders = [each for each in self._processes() if inodes & set(_sockets(each))]
        assert holders, "nobody of it listens"
        return any("bridgehead/_native" in _maps(each) for each in holders)

    def _processes(self) -> Iterator[int]:
        """Its processes: those of its session, and those that left it with the variables they were given."""
        mark = f"{MARK}={self._folder}".encode()
        for each in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                after = (each / "stat").read_text().rpartition(")")[2].split()
                if int(after[3]) == self.process.pid or mark in (each / "environ").read_bytes().split(b"\0"):
                    yield int(each.name)


def free_port() -> int:
    """A port that nobody has now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listening(port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == LISTENING and int(words[1].rpartition(":")[2], 16) == port:
                yield words[9]


def _sockets(process: int) -> Iterator[str]:
    with suppress(OSError):
        for each in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):
                if found := re.fullmatch(r"socket:\[(\d+)\]", os.readlink(each)):
                    yield found[1]


def _maps(process: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{process}/maps").read_text()
    return ""


if sys.platform != "linux":
    raise SystemExit("who listens is read from Linux's /proc")
