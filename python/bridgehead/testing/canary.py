"""A client that asks 20 times a second and notes what became of each request, while a test does its worst.

Not load: `bridgehead.load` is that. Every request has an id, half of them come on a connection of their
own, the others on one that is kept as long as the server keeps it.

Invariant: a request is sent once. What became of it is in `log` when `stop` returns, whatever it was.
"""

import asyncio
import itertools
import json
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Self, TypedDict
from urllib.parse import urlsplit

from bridgehead.testing.asking import Connection, Reply, ask
from bridgehead.testing.canary_app import body_of
from bridgehead.testing.clients import Target
from bridgehead.testing.ledger import enrol, ids_of, read_ledger, senders
from bridgehead.testing.promise import Outcome, Sent, Verdict, judge

RATE = 20.0
PATIENCE = 15.0
# A kept connection is asked so often before it is given up for a new one.
_KEPT = 25


class CanaryKeywords(TypedDict, total=False):
    """What the fixture takes, for type checkers."""

    ledger: str | os.PathLike[str]
    rate: float
    patience: float
    due: Callable[[int], bytes] | None
    log: str | Path | None
    tls: ssl.SSLContext | None
    bodies: bool


class Canary:
    """Begins when it is made; `check()` ends it and judges."""

    def __init__(
        self,
        target: Target,
        paths: str | Iterable[str] = "/",
        *,
        ledger: str | os.PathLike[str],
        rate: float = RATE,
        patience: float = PATIENCE,
        due: Callable[[int], bytes] | None = body_of,
        log: str | Path | None = None,
        tls: ssl.SSLContext | None = None,
        bodies: bool = False,
    ) -> None:
        """Ask `paths` in turn; `due` says the body of an id (None: any), `log` is a file of JSON lines.

        `tls` is whom to believe behind `https://`, if not who is believed by the system. With `bodies` every
        third request is a POST of what is due, in turn with a declared length and chunked, for the
        application to check.
        """
        url = target if isinstance(target, str) else target.url
        self._paths = itertools.cycle([paths] if isinstance(paths, str) else list(paths))
        self._address, self._tls = _address(url), _context(url, tls)
        self._ledger, self._rate, self._patience, self._due = Path(ledger), rate, patience, due
        self._bodies = bodies
        self._file = None if log is None else Path(log)
        # Ids of two canaries, and of two runs, are not the same.
        self._sender = int.from_bytes(os.urandom(5), "big")
        enrol(self._ledger, self._sender)
        self._ids = iter(ids_of(self._sender))
        self.log: list[Sent] = []
        self.is_checked = False
        self._kept: list[Connection] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="canary", daemon=True)
        self._began = time.monotonic()
        self._thread.start()

    def wait_for(self, count: int, *, timeout: float = 30.0) -> None:
        """Until so many more requests have an outcome."""
        wanted, deadline = len(self.log) + count, time.monotonic() + timeout
        while len(self.log) < wanted:
            assert time.monotonic() < deadline, f"{len(self.log)} outcomes, and {wanted} are waited for"
            assert self._thread.is_alive(), "the canary has ended"
            time.sleep(0.01)

    def stop(self) -> None:
        """Ask no more, and wait for what has been asked."""
        self._stop.set()
        self._thread.join(self._patience + 10)
        assert not self._thread.is_alive(), "the canary did not end"

    def check(self) -> Verdict:
        """End it, and compare with the ledger. What other canaries have sent is theirs to judge."""
        self.stop()
        self.is_checked = True
        others = senders(self._ledger) - {self._sender}
        return judge(self.log, read_ledger(self._ledger), others=others)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # --- on its thread

    def _run(self) -> None:
        asyncio.run(self._ask_all())

    async def _ask_all(self) -> None:
        asked: set[asyncio.Task[None]] = set()
        for number in itertools.count():
            # Due at a fixed time, so a server that is slow is asked no less.
            await asyncio.sleep(max(0.0, self._began + number / self._rate - time.monotonic()))
            if self._stop.is_set():
                break
            task = asyncio.create_task(self._ask(next(self._ids), next(self._paths), number))
            asked.add(task)
            task.add_done_callback(asked.discard)
        await asyncio.gather(*asked)
        for connection in self._kept:
            connection.close()

    async def _ask(self, request: int, path: str, number: int) -> None:
        at = time.monotonic() - self._began
        connection = self._kept.pop() if number % 2 and self._kept else Connection(self._address, self._tls)
        keep = bool(number % 2) and connection.asked < _KEPT
        try:
            async with asyncio.timeout(self._patience):
                body = self._body(request, number)
                reply = await ask(connection, path, request, keep=keep, body=body)
        except TimeoutError:
            self._note(Sent(request=request, at=at, outcome=Outcome.SILENCE, fully_sent=connection.is_sent))
            connection.close()
            return
        # An answer is in time, whatever a server does behind it.
        more = reply.status is not None and await connection.has_more(is_kept=reply.may_be_kept)
        is_right, said = self._judged(request, reply)
        self._note(
            Sent(
                request=request,
                at=at,
                outcome=reply.outcome,
                fully_sent=connection.is_sent,
                status=reply.status,
                is_right=is_right,
                answers=2 if more else 1,
                kept=connection.asked > 1,
                said=said,
            )
        )
        if reply.may_be_kept and not more and not connection.is_over:
            self._kept.append(connection)
        else:
            connection.close()

    def _body(self, request: int, number: int) -> tuple[bytes, ...]:
        if not self._bodies or number % 3:
            return ()
        body = body_of(request)
        # Twelve numbers have both kinds on kept connections and on others.
        return (body,) if number % 12 < 6 else (body[:1], body[1:1000], body[1000:])

    def _judged(self, request: int, reply: Reply) -> tuple[bool, str]:
        if self._due is None or reply.status != 200:
            return True, reply.said
        try:
            return reply.body == self._due(request), reply.said
        except Exception as problem:
            return False, f"due() raised {problem!r}"

    def _note(self, sent: Sent) -> None:
        self.log.append(sent)
        if self._file is not None:
            with self._file.open("a") as file:
                file.write(json.dumps(asdict(sent) | {"outcome": sent.outcome.name}) + "\n")


def _address(url: str) -> tuple[str, int] | str:
    if url.startswith("unix:"):
        return url.removeprefix("unix:")
    parts = urlsplit(url)
    return parts.hostname or "127.0.0.1", parts.port or (443 if parts.scheme == "https" else 80)


def _context(url: str, given: ssl.SSLContext | None) -> ssl.SSLContext | None:
    if urlsplit(url).scheme != "https":
        return None
    return given or ssl.create_default_context()
