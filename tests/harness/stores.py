"""Stores that workers coordinate by: a file, or a database that is started here, on loopback, and ended.

Not a client: what is in them only `keys` reads.
"""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

STARTUP_SECONDS = 30.0
_NOBODY = 65534  # PostgreSQL does not run as root


@dataclass(frozen=True)
class Store:
    """Where it is, in the words of `coordination_app`."""

    place: str
    folder: Path

    def keys(self) -> set[str]:
        """The locks that are held."""
        kind, _, path = self.place.partition(":")
        if kind == "sqlite":
            with sqlite3.connect(path, timeout=15) as database:
                held = "SELECT name FROM locks WHERE expire_at >= datetime('now')"
                return {name for (name,) in database.execute(held)}
        if kind == "redis":
            answer = _run("redis-cli", "-u", self.place, "--raw", "KEYS", "*")
        else:
            held = "SELECT name FROM locks WHERE expire_at >= now()"
            answer = _run("psql", "-At", self.place, "-c", held)
        return set(answer.split())

    def holder(self, name: str) -> tuple[str, float]:
        """Whose lock it is by what is written, and until when by the store's own clock; nobody's: "", 0."""
        kind, _, path = self.place.partition(":")
        if kind == "sqlite":
            with sqlite3.connect(path, timeout=15) as database:
                written = "SELECT token, strftime('%s', expire_at) FROM locks WHERE name = ?"
                said = list(database.execute(written, (name,)).fetchone() or ())
        elif kind == "redis":
            both = "return {redis.call('get', KEYS[1]) or '', redis.call('pexpiretime', KEYS[1]) .. 'e-3'}"
            said = _run("redis-cli", "-u", self.place, "--raw", "EVAL", both, "1", name).split()
        else:
            written = f"SELECT token, extract(epoch FROM expire_at) FROM locks WHERE name = '{name}'"
            said = _run("psql", "-AtF ", self.place, "-c", written).split()
        return (said[0], float(said[1])) if len(said) == 2 else ("", 0.0)


@contextmanager
def sqlite(folder: Path) -> Iterator[Store]:
    place = folder / "locks.db"
    with sqlite3.connect(place) as database:
        # As grelmicro has it. Of workers that begin to at once one finds the file locked, and does not wait.
        database.execute("PRAGMA journal_mode=WAL")
    database.close()
    yield Store(f"sqlite:{place}", folder)


@contextmanager
def redis(folder: Path) -> Iterator[Store]:
    port = _free_port()
    command = [_program("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    with _running([*command, "--dir", str(folder)], port):
        yield Store(f"redis://127.0.0.1:{port}/0", folder)


@contextmanager
def postgresql(folder: Path) -> Iterator[Store]:
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not binaries:
        pytest.skip("postgresql is not installed: apt-get install postgresql")
    # Not in pytest's: whoever runs it has to come to it, and pytest has those to itself, again with each run.
    with TemporaryDirectory(prefix="bridgehead-postgresql-") as place:
        ids: dict[str, Any] = {}
        if os.geteuid() == 0:
            os.chown(place, _NOBODY, _NOBODY)
            ids = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}
        port, where = _free_port(), ["-D", f"{place}/data"]
        initdb = [str(binaries[-1] / "initdb"), *where, "-A", "trust", "-U", "app"]
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, cwd=place, **ids)
        options = ["-p", str(port), "-k", place, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
        with _running([str(binaries[-1] / "postgres"), *where, *options], port, cwd=place, **ids):
            yield Store(f"postgresql://app@127.0.0.1:{port}/postgres", folder)


@contextmanager
def _running(command: list[str], port: int, **settings: Any) -> Iterator[None]:
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **settings,
    )
    try:
        deadline = time.monotonic() + STARTUP_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None, f"{command[0]} has ended with {process.returncode}"
                assert time.monotonic() < deadline, f"{command[0]} does not listen"
                time.sleep(0.02)  # nothing tells of it: it is somebody else's server
        yield
    finally:
        process.terminate()
        process.wait(15)


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: apt-get install {name}")
    return found


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=15).stdout


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
