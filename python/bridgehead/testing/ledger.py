"""Which requests an application has begun, finished and had cancelled, in a file that survives kill -9.

Not a log for people, and no judge (`promise.py`): records of 16 bytes in memory that the kernel writes, so
what was noted before a process died is there afterwards. Only a crash of the machine loses it.

A ledger is a folder, and each process has a file of its own in it: a server's old and new processes, and
all of its workers, write without asking each other. Whoever sends requests enrols there: ids of one sender
have their upper bits in common, so that several canaries of one ledger each judge their own.

Invariant: a record is whole or not there. Its event is written last, and a record without one is none.
"""

import itertools
import mmap
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

# Where the middleware of `ledgered.py` finds the folder.
VARIABLE = "CANARY_LEDGER"
# The id, then the process, then the event with a byte for each of four.
_RECORD = struct.Struct("<QI")
_SIZE = 16
_EVENT = 12
# The lower bits of an id are for its sender to count; the upper ones say who that is.
_COUNTED = 24
# 16 MiB, of which the disk has what was written.
CAPACITY = 2**20


class Event(IntEnum):
    """What happened to a request."""

    STARTED = 1
    FINISHED = 2
    CANCELLED = 3
    FAILED = 4


@dataclass(frozen=True, slots=True)
class Entry:
    """One record."""

    request: int
    event: Event
    process: int


class Ledger:
    """This process's file in a folder. Any thread may write."""

    def __init__(self, folder: str | os.PathLike[str], *, capacity: int = CAPACITY) -> None:
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self._process = os.getpid()
        # Handlers may run on several threads.
        self._lock = threading.Lock()
        self._next = 0
        self._capacity = capacity
        with _new_file(folder, self._process) as file:
            os.truncate(file.fileno(), capacity * _SIZE)
            self._memory = mmap.mmap(file.fileno(), capacity * _SIZE)

    def note(self, request: int, event: Event) -> None:
        """Write one record; a ledger that is full is an error, for a record left out would be a lie."""
        with self._lock:
            if self._next == self._capacity:
                raise RuntimeError(f"the ledger is full: {self._capacity} records; give it more capacity")
            at, self._next = self._next * _SIZE, self._next + 1
            self._memory[at : at + _RECORD.size] = _RECORD.pack(request, self._process)
            self._memory[at + _EVENT] = event

    def close(self) -> None:
        """Let go of the file; nothing needs it."""
        self._memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Folder:
    """Where a test keeps a ledger: `serve_app("shop:app", env=ledger.env)`."""

    path: Path

    @property
    def env(self) -> dict[str, str]:
        """What tells a `Ledgered` application in another process where it is."""
        return {VARIABLE: str(self.path)}

    def entries(self) -> list[Entry]:
        """All that has been noted so far."""
        return read_ledger(self.path)

    def __fspath__(self) -> str:
        return str(self.path)


def sender_of(request: int) -> int:
    """Whose id that is."""
    return request >> _COUNTED


def ids_of(sender: int) -> range:
    """All that this sender may give."""
    return range(sender << _COUNTED, (sender + 1) << _COUNTED)


def enrol(folder: str | os.PathLike[str], sender: int) -> None:
    """Say that requests of this sender are judged by itself. To be said before the first is sent."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{sender}.sender").touch()


def senders(folder: str | os.PathLike[str]) -> set[int]:
    """Who has enrolled."""
    return {int(file.stem) for file in Path(folder).glob("*.sender")}


def _new_file(folder: Path, process: int) -> BinaryIO:
    """Another name than any process had before: process ids come again."""
    for number in itertools.count():
        with suppress(FileExistsError):
            return (folder / f"{process}-{number}.ledger").open("x+b")
    raise AssertionError("the numbers do not end")


def read_ledger(folder: str | os.PathLike[str]) -> list[Entry]:
    """All records of all processes, each process's in order; of processes that run or were killed, too."""
    files = sorted(Path(folder).glob("*.ledger"))
    return list(itertools.chain.from_iterable(map(_entries, files)))


def _entries(file: Path) -> Iterator[Entry]:
    content = file.read_bytes()
    for at in range(0, len(content), _SIZE):
        event = content[at + _EVENT]
        # The next may be there already, if a thread was stopped within a record.
        if event:
            request, process = _RECORD.unpack_from(content, at)
            yield Entry(request, Event(event), process)
