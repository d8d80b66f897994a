"""How many processes serve, and for how long each of them: options, as a part of `Config`.

Not what the parent of several does with them: `supervisor/`.
"""

# ruff: noqa: RUF009 (`option` returns a dataclass field, which is what belongs there)

from dataclasses import dataclass

from bridgehead.encryption import Encryption
from bridgehead.options import maybe, number_or, option, whole
from bridgehead.quantities import Bytes, seconds, size

_NEW = "new: uvicorn has no such option"
_GROUP = "Processes"
_ANY = 2**31 - 1


@dataclass(slots=True, kw_only=True)
class Processes(Encryption):
    """The processes of one server."""

    workers: int | str | None = option(
        1,
        read=number_or("auto", whole(1, 512)),
        metavar="NUMBER|auto",
        also="WEB_CONCURRENCY",
        group=_GROUP,
        help="processes that serve; auto: one for each core that is granted; see docs/workers.md",
    )
    limit_max_requests: int | None = option(
        None,
        read=maybe(whole(0, _ANY)),
        metavar="NUMBER",
        group=_GROUP,
        help="have a successor take over from a worker that has had so many requests; 0: any number",
    )
    limit_max_requests_jitter: int | None = option(
        None,
        read=maybe(whole(0, _ANY)),
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
