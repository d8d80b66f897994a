"""A handler cannot tell: what a coroutine sees in a request is what it sees under `asyncio.run`."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fidelity.registry import all_cases
from harness import Client, Server, request

HERE = Path(__file__).resolve().parent
CASES = all_cases()
# How a case is driven, one after another: an idle loop tells of wakes that are missing.
ALONE = ("first", "resumed")
# How all cases are driven at once that may be.
TOGETHER = ("resumed", "looped")
# An anyio that depends on sniffio, as those before 4.12 do: `.ci/anyio` puts it there.
BRINGS_SNIFFIO = HERE.parent.parent / "target" / "anyio" / "brings-sniffio"
# The body for which a handler waits that is to be resumed.
GO = b"go"
# All cases take four seconds; a machine that is busy with others takes what it wants.
SECONDS = 150
Accounts = dict[str, dict[str, Any]]


@functools.cache
def accounts_of_plain(loop: str, path: str) -> Accounts:
    """What every case sees as a program of its own."""
    command = [sys.executable, "-m", "fidelity.plain", loop]
    env = {**os.environ, "PYTHONPATH": path}
    made = subprocess.run(command, cwd=HERE, env=env, stdout=subprocess.PIPE, check=True, timeout=SECONDS)
    accounts: Accounts = json.loads(made.stdout)
    return accounts


class Served:
    """One server, and what its handlers saw. `path` goes before what is installed, `only` begins names."""

    def __init__(self, loop: str, path: str = "", only: str = "") -> None:
        self.loop = "uvloop" if "uvloop" in loop else "asyncio"
        self.by_rust = loop.endswith("-rust")
        everything = accounts_of_plain(self.loop, path)
        self.plain = {name: each for name, each in everything.items() if name.startswith(only)}
        # The clients hold their bodies back for as long as a case takes, on however slow a machine.
        options, env = ("--loop", loop, "--timeout-body", "0", "--min-rate", "0"), {"PYTHONPATH": path}
        self._server = Server("fidelity.app:app", *options, cwd=HERE, env=env)
        self._together: dict[str, Accounts] = {}

    def __enter__(self) -> Served:
        self._server.__enter__()
        names = [name for name in self.plain if not CASES[name].alone]
        self._together = {step: self._drive(step, names) for step in TOGETHER}
        return self

    def __exit__(self, *reason: Any) -> None:
        self._server.__exit__(*reason)

    def accounts(self, name: str) -> Iterator[tuple[str, Any]]:
        """What the case saw, each way it was driven."""
        for step in ALONE:
            yield f"{step}, alone", self._drive(step, [name])[name]
        if not CASES[name].alone:
            for step in TOGETHER:
                yield f"{step}, together", self._together[step][name]

    def _drive(self, step: str, names: list[str]) -> Accounts:
        clients = {name: self._begin(name, step) for name in names}
        if step == "resumed":
            for client in clients.values():
                # All of them wait by now.
                assert client.read_head()[1] == 200
                assert client.read_chunk() == b"ready"
            for client in clients.values():
                client.send(GO)
            return {name: json.loads(b"".join(client.read_chunks())) for name, client in clients.items()}
        return {name: client.read_response().json() for name, client in clients.items()}

    def _begin(self, name: str, step: str) -> Client:
        client = self._server.connect(timeout=SECONDS)
        client.send(request(f"/case/{name}?step={step}", method="POST", body=GO).removesuffix(GO))
        return client


@pytest.fixture(scope="module")
def served(loop: str) -> Iterator[Served]:
    with Served(loop) as served:
        yield served


@pytest.mark.timeout(3 * SECONDS)
@pytest.mark.combinations
@pytest.mark.parametrize("name", CASES)
def test_a_handler_sees_what_a_program_sees(served: Served, name: str) -> None:
    if name not in served.plain:
        pytest.skip(f"means nothing on {served.loop}")
    if CASES[name].differs_in_rust and served.by_rust:
        pytest.skip("cannot be the same: see the README")
    for driven, account in served.accounts(name):
        assert account == served.plain[name], f"driven {driven}"


@pytest.mark.timeout(3 * SECONDS)
@pytest.mark.pairwise
@pytest.mark.parametrize("sniffio", ["brought", "missing"])
def test_anyio_is_the_same_with_one_that_brings_sniffio_and_where_nobody_does(
    loop: str, sniffio: str, tmp_path: Path
) -> None:
    if sniffio == "brought" and not BRINGS_SNIFFIO.is_dir():
        pytest.skip(f"there is no {BRINGS_SNIFFIO.name}: `make anyio-tests` fetches it")
    path = BRINGS_SNIFFIO if sniffio == "brought" else tmp_path
    if sniffio == "missing":
        (tmp_path / "sniffio.py").write_text("raise ModuleNotFoundError('missing, for this test')\n")
    with Served(loop, str(path), only="anyio_") as served:
        known = served.plain["anyio_threads.sniffio_knows_the_library"]["events"][0]
        assert known == ["sniffio" if sniffio == "brought" else "not installed"]
        for name in served.plain:
            for driven, account in served.accounts(name):
                assert account == served.plain[name], f"{name}, driven {driven}"
