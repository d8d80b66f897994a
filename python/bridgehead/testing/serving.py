"""One door to a server under test: words are served by a process, an application by a thread.

Not the two: `in_process.py` and `in_thread.py`.

Invariant: what cannot be served where it was asked for is refused before anything starts.
"""

from typing import Any, Literal, overload

from bridgehead.testing.in_process import ServerProcess
from bridgehead.testing.in_thread import ServerThread
from bridgehead.testing.served import Served as Served

Where = Literal["process", "thread"]


@overload
def running(app: str, *, where: Literal["process"] | None = None, **options: Any) -> ServerProcess: ...


@overload
def running(app: Any, *, where: Where | None = None, **options: Any) -> Served: ...


def running(app: Any, *, where: Where | None = None, **options: Any) -> Served:
    """A server for `with`: `with running("shop:app", access_log=False) as server:`.

    `app` is a target in words, served by a process of its own; or an application, served by a thread of this
    one. `where` says otherwise: words may be served by a thread. The options are those of
    `bridgehead.Config`; besides, `allow=["Traceback"]` names what the log may have, and a process
    takes `env` and `cwd`.
    """
    in_words = isinstance(app, str)
    match where or ("process" if in_words else "thread"):
        case "process" if in_words:
            return ServerProcess(app, **options)
        case "process":
            raise TypeError(f"another process cannot have {app!r}: name it in words, as module:attribute")
        case "thread":
            for name in options.keys() & {"env", "cwd"}:
                raise TypeError(f"a server on a thread shares this process's {name}")
            return ServerThread(app, **options)
    raise ValueError(f"{where!r} is neither 'process' nor 'thread'")
