"""Machines of one network, as network namespaces: `edge`, where the proxy is, and `one` and `two` behind it.

Not containers: files and processes are the system's own. Needs root and `ip`.
Invariant: leaving the `with` block leaves no namespace, no interface and no process behind.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

# The addresses of examples/deploy; both machines are a cable away from the edge.
EDGE = "10.77.0.1"
MACHINES = {"one": "10.77.0.11", "two": "10.77.0.12"}


def can_be_had() -> bool:
    """Whether namespaces can be made here."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"bridgehead-{os.getpid()}-probe"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode == 0
    subprocess.run(["ip", "netns", "delete", name], capture_output=True)
    return made


class Hosts:
    """The three machines, from `with` to their end."""

    def __init__(self, *, without_machines: bool = False) -> None:
        self._prefix = f"bridgehead-{os.getpid()}-"
        self._machines = {} if without_machines else MACHINES
        self._running: list[subprocess.Popen[Any]] = []

    def __enter__(self) -> Self:
        try:
            for name in ("edge", *self._machines):
                self._ip("netns", "add", self._prefix + name)
                self._ip("-n", self._prefix + name, "link", "set", "lo", "up")
            for name, address in self._machines.items():
                self._connect(name, address)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def start(self, name: str, command: list[str], said: Path, cwd: Path) -> subprocess.Popen[bytes]:
        """Run it on a machine, in a session of its own; what it says is added to a file."""
        with open(said, "ab") as file:
            process = subprocess.Popen(
                ["ip", "netns", "exec", self._prefix + name, *command],
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._running.append(process)
        return process

    def talk(self, name: str, command: list[str]) -> subprocess.Popen[str]:
        """Run it on a machine and speak with it, line by line."""
        process = subprocess.Popen(
            ["ip", "netns", "exec", self._prefix + name, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._running.append(process)
        return process

    def ask(self, name: str, url: str) -> int | None:
        """The status of an answer to somebody on that machine, if there is one."""
        program = (
            "import sys, urllib.request, urllib.error\n"
            "try: print(urllib.request.urlopen(sys.argv[1], timeout=5).status)\n"
            "except urllib.error.HTTPError as answer: print(answer.code)\n"
            "except OSError: pass\n"
        )
        command = [
            "ip",
            "netns",
            "exec",
            self._prefix + name,
            shutil.which("python3") or "python3",
            "-c",
            program,
            url,
        ]
        said = subprocess.run(command, capture_output=True, text=True).stdout.strip()
        return int(said) if said else None

    def _connect(self, name: str, address: str) -> None:
        """A cable between the edge and a machine: two addresses, and nothing else is reached by it."""
        edge, there = self._prefix + "edge", self._prefix + name
        peer = ("type", "veth", "peer", "name", "to-edge", "netns", there)
        self._ip("-n", edge, "link", "add", f"to-{name}", *peer)
        self._ip("-n", edge, "address", "add", EDGE, "peer", address, "dev", f"to-{name}")
        self._ip("-n", there, "address", "add", address, "peer", EDGE, "dev", "to-edge")
        self._ip("-n", edge, "link", "set", f"to-{name}", "up")
        self._ip("-n", there, "link", "set", "to-edge", "up")

    def _ip(self, *words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)

    def _end(self) -> None:
        for process in self._running:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        for name in ("edge", *self._machines):
            subprocess.run(["ip", "netns", "delete", self._prefix + name], capture_output=True, timeout=30)
