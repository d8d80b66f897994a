"""What a parent and a child process of ours tell each other: JSON lines over a pair of sockets.

Not what is done about it: `offspring.py` is the parent's side, `child.py` the child's.

Invariant: the end of the stream means that the other one is gone.
"""

import json
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

from bridgehead.config import OPTIONS, Config
from bridgehead.station import Posting

_CHUNK = 65536
SILENCE = 2.0  # seconds within which a child that was told to stop has to say something
STOP = {"stop": True}
RETIRE = {"retire": True}  # a stop: somebody else lets clients in from here on
LEVEL = "level"  # with what logs say from here on
REOPEN = {"reopen": True}  # the files of logs
SHOW = {"show": True}  # where its threads and tasks are


class Stage(StrEnum):
    """How far a child has come, in its own words."""

    READY = "ready"
    STOPPING = "stopping"
    OVER = "over"


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """A child's stage, and within how many seconds the next one is due at the latest."""

    stage: Stage
    within: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a child is to serve; its application is named in words, and its sockets by number.

    When something can be read from `recall`, or its other end is closed, the sockets are the parent's again.
    """

    config: Config
    path: list[str]
    recall: int = -1
    posting: Posting | None = None  # its part, if it is one of several
    name: str = Config.calls_itself  # as which it says where it listens

    @property
    def title(self) -> list[str]:
        """Words for who lists processes; nobody reads them."""
        post = [] if self.posting is None else ["worker", str(self.posting.place + 1)]
        return [*post, "of", self.config.app] if isinstance(self.config.app, str) else post

    def written(self) -> dict[str, Any]:
        """As JSON has it."""
        values = {option.name: _plain(getattr(self.config, option.name)) for option in OPTIONS}
        posting = None if self.posting is None else asdict(self.posting)
        own = {"config": values, "path": self.path, "recall": self.recall, "posting": posting}
        return {**own, "name": self.name}

    @classmethod
    def read(cls, message: dict[str, Any]) -> "Order":
        """What `written` wrote."""
        return cls(
            config=Config(**message["config"]),
            path=message["path"],
            recall=message["recall"],
            posting=None if message["posting"] is None else Posting.read(message["posting"]),
            name=message["name"],
        )


class Channel:
    """One of the two ends."""

    def __init__(self, sock: socket.socket, *, rest: bytes = b"") -> None:
        self._socket = sock
        self._rest = rest

    @property
    def rest(self) -> bytes:
        """The beginning of a line whose end has not come yet."""
        return self._rest

    def fileno(self) -> int:
        """What to wait for."""
        return self._socket.fileno()

    def send(self, message: dict[str, Any]) -> None:
        """Say something; whether anybody still listens is seen by `receive`."""
        with suppress(OSError):
            self._socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, *, wait: bool = True) -> list[dict[str, Any]] | None:
        """What was said since; None at the end of the stream."""
        try:
            more = self._socket.recv(_CHUNK, 0 if wait else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not more:
            return None
        *lines, self._rest = (self._rest + more).split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        """Say no more."""
        self._socket.close()


def news_of(message: dict[str, Any]) -> News:
    """What a child has said."""
    known = {each.name for each in fields(News)}
    return News(
        **{name: value for name, value in message.items() if name in known}
        | {"stage": Stage(message["stage"])}
    )


def _plain(value: Any) -> Any:
    """Headers are bytes, which JSON has not."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value.decode("latin-1") if isinstance(value, bytes) else value
