"""The parent's side of a child process that serves: started, heard, stopped in order, or killed.

Not when that happens (`reload.py`), and not what the child does (`child.py`). The parent never imports an
application: whatever that does, it does to the child.

Invariant: a child that was told to stop is gone when its time is over.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from enum import Enum, auto
from typing import Any, Protocol

from bridgehead.channel import (
    LEVEL,
    REOPEN,
    RETIRE,
    SHOW,
    SILENCE,
    STOP,
    Channel,
    News,
    Order,
    Stage,
    news_of,
)
from bridgehead.config import Config
from bridgehead.errors import EXIT_OVERDUE, EXIT_START_FAILED, EXIT_STOP_FAILED
from bridgehead.home import Home
from bridgehead.inherited import Inherited
from bridgehead.notices import for_workers
from bridgehead.quantities import Bytes
from bridgehead.sockets import Bound
from bridgehead.unheard import held_back

_LAST_WORDS = 1.0  # seconds for one that has not heard to write where its threads are
_TURN = 0.25  # of them others wait for, since the lines of two that write at once tell nothing
_LOOK = 0.01  # seconds between two looks whether it is over


class HasFileno(Protocol):
    """Something with a descriptor."""

    def fileno(self) -> int:
        """Its number."""
        ...


class Process(Protocol):
    """As much of `subprocess.Popen` as is needed of a child."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None:
        """How it ended, if it has."""
        ...

    def wait(self) -> int:
        """How it ends."""
        ...

    def kill(self) -> None:
        """SIGKILL."""
        ...


class State(Enum):
    """What a child does, as far as its parent has heard."""

    STARTING = auto()  # its application is imported, and its lifespan begins
    SERVING = auto()
    STOPPING = auto()
    GONE = auto()


class Offspring:
    """One child process."""

    def __init__(self, order: Order, inherited: Iterable[HasFileno], home: Home) -> None:
        ours, theirs = socket.socketpair()
        lent, recall = socket.socketpair()
        with theirs, recall, held_back():
            process = subprocess.Popen(
                interpreter("bridgehead.child", str(theirs.fileno()), *order.title),
                pass_fds=[theirs.fileno(), recall.fileno(), *(each.fileno() for each in inherited)],
                env=for_workers(home.environ),
                cwd=home.folder,
                **home.rights,
            )
            order = replace(order, recall=recall.fileno())
        self._hold(process, Channel(ours), lent)
        self._channel.send(order.written())

    def _hold(self, process: Process, channel: Channel, lent: socket.socket) -> None:
        self._process, self._channel, self._lent = process, channel, lent
        self.state = State.STARTING
        self.served = False
        self._heard = False  # that it is to end
        self._deadline: float | None = None
        self._last_words: float | None = None  # when they are over

    def written(self) -> dict[str, Any]:
        """For another program in this same process, which takes the child over."""
        numbers = {"channel": self._channel.fileno(), "lent": self._lent.fileno()}
        return numbers | {
            "pid": self.pid,
            "heard": self._channel.rest.hex(),
            "state": self.state.name,
            "served": self.served,
        }

    def take_over(self, written: Mapping[str, Any]) -> None:
        """What `written` wrote."""
        channel = Channel(_inherited(written["channel"]), rest=bytes.fromhex(written["heard"]))
        lent = _inherited(written["lent"]) if written["lent"] >= 0 else socket.socket()
        self._hold(Inherited(written["pid"]), channel, lent)
        self.state = State[written["state"]]
        self.served = written["served"]
        if self.state is State.STOPPING:
            self._heard = True
            self._expect(SILENCE)

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    def fileno(self) -> int:
        """Readable when `hear` has something to hear."""
        return self._channel.fileno()

    def hear(self) -> bool:
        """Take in what it has said. False if it has hung up: then it is over, or soon will be."""
        said = self._channel.receive(wait=False)
        for message in said or ():
            self._take_in(news_of(message))
        if said is None and self._deadline is None:
            self._expect(SILENCE)
        return said is not None

    @property
    def patience(self) -> float | None:
        """Seconds until it is overdue, or then until it is killed; None while nothing is due."""
        due = self._deadline if self._last_words is None else self._last_words
        return None if due is None else max(0.0, due - time.monotonic())

    def take_back(self) -> None:
        """It lets nobody in from here on, whatever its loop does: its network looks, without Python."""
        self._lent.close()

    def retire(self, within: float = SILENCE) -> None:
        """Tell it to end, since somebody else serves: its clients are told with their next answers."""
        self.take_back()
        self._tell_end(RETIRE, within)

    def stop(self, within: float = SILENCE) -> None:
        """Tell it to end, once. It has to say something within so many seconds."""
        self._tell_end(STOP, within)

    def _tell_end(self, word: dict[str, bool], within: float) -> None:
        if self.state in (State.STOPPING, State.GONE):
            return
        self._channel.send(word)
        self.state = State.STOPPING
        self._expect(within)

    def reopen(self) -> None:
        """Have it open its logs again."""
        self._channel.send(REOPEN)

    def set_level(self, level: int) -> None:
        """Have it say this much from here on."""
        self._channel.send({LEVEL: level})

    def show(self) -> None:
        """Have it write on stderr where its threads and tasks are."""
        self._channel.send(SHOW)

    def kill(self) -> None:
        """End it now, whatever it does."""
        self._process.kill()
        self._process.wait()

    def end_by_force(self) -> None:
        """End it, since its time is over; to be called again until it has ended.

        Who has not heard of its end cannot tell what holds it: SIGABRT has it write its stacks
        (`child.py`), for which it needs no lock of Python's. Others are killed at once.
        """
        if self._heard:
            self.kill()
        elif self._last_words is None:
            self._last_words = time.monotonic() + _LAST_WORDS
            _spare_the_core(self.pid)
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGABRT)
        elif self._last_words <= time.monotonic():
            self.kill()

    def must_wait(self, others: Iterable["Offspring"]) -> bool:
        """Whether one of these writes its stacks, as it would too when it is ended by force."""
        if self._heard or self.is_being_ended or not any(each.is_writing for each in others):
            return False
        self._expect(_LOOK)
        return True

    @property
    def is_being_ended(self) -> bool:
        """Whether that has begun."""
        return self._last_words is not None

    @property
    def is_writing(self) -> bool:
        """Whether it is its turn to write where it is."""
        if self._last_words is None or self._process.poll() is not None:
            return False
        return time.monotonic() < self._last_words - _LAST_WORDS + _TURN

    def has_ended(self) -> bool:
        """Whether the process is over, and taken off the system's list."""
        if self._process.poll() is None:
            return False
        self.hear()
        self.state = State.GONE
        return True

    def close(self) -> None:
        """Let go of what is left of it."""
        self._channel.close()
        self._lent.close()

    @property
    def ending(self) -> str:
        """How it ended: `was killed by SIGSEGV`, `ended with exit code 1`."""
        code = self._process.returncode
        if code is not None and code < 0:
            return f"was killed by {_signal_name(-code)}"
        return f"ended with exit code {code}"

    @property
    def delay(self) -> str:
        """Why it has to be killed."""
        if self._heard:
            return "did not end in time"
        return "has not heard that it is to end, since something keeps Python's lock, or has stopped it"

    @property
    def verdict(self) -> str:
        """What is done about it then, and what comes next on stderr."""
        return "killed." if self._heard else "killed. Where it is, unless it is stopped:"

    @property
    def refused_to_start(self) -> bool:
        """Whether it ended by itself before it served, and has said why."""
        return not self.served and self._process.returncode == EXIT_START_FAILED

    @property
    def failed_to_stop(self) -> bool:
        """Whether it could not end as it should, and has said so."""
        return self._process.returncode in (EXIT_STOP_FAILED, EXIT_OVERDUE)

    @property
    def ended_overdue(self) -> bool:
        """Whether it ended itself since its time was over, and has said what held it."""
        return self._process.returncode == EXIT_OVERDUE

    def _take_in(self, news: News) -> None:
        match news.stage:
            case Stage.READY:
                self.served = True
                if self.state is State.STARTING:
                    self.state = State.SERVING
            case Stage.STOPPING | Stage.OVER:
                self.state = State.STOPPING
                self._heard = True
                self._expect(news.within + SILENCE)

    def _expect(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds


def lent(config: Config, bound: Iterable[Bound]) -> Config:
    """The same, on sockets that the child inherits."""
    places = [(f"fd://{each.fileno()}", each.secure == config.is_ssl) for each in bound]
    return replace(
        config,
        bind=tuple(place for place, as_asked in places if as_asked),
        insecure_bind=tuple(place for place, as_asked in places if not as_asked),
    )


def for_a_child(config: Config) -> Config:
    """The same, without what its parent does for it."""
    endless = replace(config, limit_max_requests=None, worker_lifetime=0.0, worker_max_rss=Bytes(0))
    return replace(endless, workers=1, pidfile=None, control_socket=None, user=None, group=None, umask=None)


def interpreter(module: str, *words: str) -> list[str]:
    """The command that runs a module of ours as this process was run."""
    return [sys.executable, *_interpreter_flags(), "-m", module, *words]


def _spare_the_core(pid: int) -> None:
    """SIGABRT leaves a core file where those are wanted; of a kill there is none, nor is one waited for."""
    import resource  # few parents need it

    with suppress(OSError, ValueError, AttributeError):  # it is over; or the system has no such call
        _, hard = resource.prlimit(pid, resource.RLIMIT_CORE)
        # One byte: at that Linux writes none, and hands none to a program either, as it does at 0.
        resource.prlimit(pid, resource.RLIMIT_CORE, (min(hard, 1) if hard >= 0 else 1, hard))


def _inherited(number: int) -> socket.socket:
    sock = socket.socket(fileno=number)
    sock.set_inheritable(False)
    return sock


def _interpreter_flags() -> list[str]:
    """`-X dev` and the like, and `-P`: a file that lies here may have the name of a module that we import."""
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return flags if "-P" in flags or "-I" in flags else [*flags, "-P"]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
