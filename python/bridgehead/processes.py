"""How many processes serve, and for how long each of them: options, as a part of `Config`.

Not what the parent of several does with them: `supervisor/`.
"""

# ruff: noqa: RUF009 (`option` returns a dataclass field, which is what belongs there)

from dataclasses import dataclass

from bridgehead.encryption import Encryption
from bridgehead.options import below, limit, maybe, name_or_number, number_or, octal, option, path, whole
from bridgehead.quantities import Bytes, seconds, size

_NEW = "new: uvicorn has no such option"
_GROUP = "Processes"
_ANY = 2**31 - 1
_WORKERS = whole(0, 512)


def _one_or_more(value: object) -> int:
    """How many; none is one, as in uvicorn."""
    return _WORKERS(value) or 1


@dataclass(slots=True, kw_only=True, init=False, repr=False, eq=False)  # `Config` has these
class Processes(Encryption):
    """The processes of one server."""

    workers: int | str | None = option(
        1,
        read=number_or("auto", _one_or_more),
        metavar="NUMBER|auto",
        also="WEB_CONCURRENCY",
        group=_GROUP,
        help="processes that serve; auto: one for each core that is granted; see docs/workers.md",
    )
    limit_max_requests: int | None = option(
        None,
        read=maybe(limit(0, _ANY)),
        metavar="NUMBER",
        group=_GROUP,
        help="have a successor take over from a worker that has had so many requests; 0: any number",
    )
    limit_max_requests_jitter: int | None = option(
        None,
        read=maybe(limit(0, _ANY)),
        metavar="NUMBER",
        unset="a tenth of it",
        group=_GROUP,
        help="that many more for a worker, at most, by chance: so that not all are due at once",
        differs="uvicorn: 0. Workers that begin together are due together",
    )
    worker_lifetime: float = option(
        0.0,
        read=seconds,
        metavar="TIME",
        group=_GROUP,
        help="have a successor take over from a worker that has served for so long; 0: never",
        differs=_NEW,
    )
    worker_lifetime_jitter: float | None = option(
        None,
        read=maybe(seconds),
        metavar="TIME",
        unset="a tenth of it",
        group=_GROUP,
        help="that much longer for a worker, at most, by chance",
        differs=_NEW,
    )
    worker_max_rss: Bytes = option(
        Bytes(0),
        read=size,
        metavar="SIZE",
        group=_GROUP,
        help="have a successor take over from a worker that takes more memory (Linux); 0: never",
        differs=_NEW,
    )
    pidfile: str | None = option(
        None,
        read=maybe(path),
        metavar="FILE",
        anchor=below,
        group=_GROUP,
        help="write the number of the process to be signalled here, once its sockets are bound",
        differs=_NEW,
    )
    user: str | None = option(
        None,
        read=maybe(name_or_number),
        metavar="NAME",
        group=_GROUP,
        help="whom workers run as, by name or number; a parent binds the sockets, and keeps its rights",
        differs=_NEW,
    )
    group: str | None = option(
        None,
        read=maybe(name_or_number),
        metavar="NAME",
        unset="the user's own",
        group=_GROUP,
        help="the group that workers run as, by name or number",
        differs=_NEW,
    )
    umask: str | None = option(
        None,
        read=maybe(octal),
        metavar="OCTAL",
        group=_GROUP,
        help="what is taken from the rights of files that the application makes, such as 027",
        differs=_NEW,
    )
    control_socket: str | None = option(
        None,
        read=maybe(path),
        metavar="PATH",
        anchor=below,
        group=_GROUP,
        help="answer `bridgehead ctl` on this Unix socket, which is for this user alone",
        differs=_NEW,
    )
