"""Options that only uvicorn has a use for: taken, so that its command lines go on working.

Not what the words mean there (a parser of Python's): each is mapped to what comes nearest, or warned of.

Invariant: none of them is passed over in silence.
"""

# ruff: noqa: RUF009 (`option` returns a dataclass field, which is what belongs there)

from collections.abc import Iterator
from dataclasses import dataclass

from bridgehead.errors import StartError
from bridgehead.options import Shape, choice, maybe, option, switch
from bridgehead.quantities import Bytes, at_most

_PARSERS = choice("auto", "h11", "httptools", "zttp")
_LARGEST_HEAD = 16 * 1024**2


def _parser(value: object) -> str:
    """The name of a parser of uvicorn's; a class of somebody's own cannot be heeded."""
    if isinstance(value, type) or (isinstance(value, str) and ":" in value):
        raise StartError(
            f"{value!r} is a protocol of Python's, and HTTP is spoken in Rust here",
            "leave it out; what it did belongs into a middleware, or to an option of docs/settings.md",
        )
    return _PARSERS(value)


@dataclass(slots=True, kw_only=True, init=False, repr=False, eq=False)  # `Config` has these
class UvicornOptions:
    """What uvicorn's users may have in their command lines."""

    http: str = option(
        "auto",
        read=_parser,
        metavar="NAME",
        group="From uvicorn",
        help="uvicorn's parsers: auto, h11, httptools, zttp. HTTP is Rust's here, so all mean the same",
    )
    h11_max_incomplete_event_size: Bytes | None = option(
        None,
        read=maybe(at_most(_LARGEST_HEAD)),
        metavar="SIZE",
        group="From uvicorn",
        help="uvicorn's word for --limit-header-bytes, which outranks it",
    )
    reset_contextvars: bool = option(
        False,
        read=switch,
        shape=Shape.FLAG,
        group="From uvicorn",
        help="requests begin with no context variable set, instead of those of the lifespan",
    )


def without_effect(http: str, ws: str) -> Iterator[str]:
    """A sentence for what changes nothing."""
    if http != "auto":
        yield f"--http {http} changes nothing: HTTP is spoken in Rust, whatever parser is named."
    if ws not in {"auto", "none"}:
        yield f"--ws {ws} changes nothing: WebSockets are spoken in Rust, whatever library is named."
