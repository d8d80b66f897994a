"""Which files are answered by the network itself: options, as a part of `Config`.

Not what becomes of them at the start (`static_files.py`), nor how a file is answered, which is Rust's.
"""

from dataclasses import dataclass
from typing import Any

from bridgehead.errors import StartError
from bridgehead.operations import Operations
from bridgehead.options import Shape, below, many, maybe, option, text, whole
from bridgehead.quantities import seconds

_NEW = "new: uvicorn has no such option"
_HINT = "write it as /static=directory"
_PAGE = "write it as /=index.html"


def url_and_place(value: object, hint: str = _HINT) -> tuple[str, str]:
    """The two sides of `URL=PLACE`."""
    url, equals, place = text(value).partition("=")
    parts = url.removeprefix("/").removesuffix("/").split("/")
    if not equals or not url.startswith("/"):
        raise StartError(f"{value!r} is not a path of requests and a place", hint)
    if url != "/" and any(part in ("", ".", "..") or set(part) & set("?#%\\") for part in parts):
        raise StartError(f"{url!r} is no path of requests", hint)
    return url.rstrip("/") or "/", place


def _mount(value: object) -> str:
    return "=".join(url_and_place(value))


def _fallback(value: object) -> str:
    url, file = url_and_place(value, _PAGE)
    if any(part in ("", ".", "..") for part in file.split("/")):
        raise StartError(f"{file!r} is no file below a directory", _PAGE)
    return f"{url}={file}"


def _mounts_below(mounts: Any, folder: str) -> tuple[str, ...]:
    sides = map(url_and_place, mounts)
    return tuple(f"{url}={below(place, folder) if place else ''}" for url, place in sides)


@dataclass(slots=True, kw_only=True, init=False, repr=False, eq=False)  # `Config` has these
class StaticOptions(Operations):
    """Which paths are files', and of which directory."""

    static: tuple[str, ...] = option(
        (),
        read=many(_mount),
        shape=Shape.LIST,
        metavar="URL=DIR",
        anchor=_mounts_below,
        group="Responses",
        help="answer what is below URL by files of DIR, without Python; several times; see docs/static.md",
        differs=_NEW,
    )
    static_fallback: tuple[str, ...] = option(
        (),
        read=many(_fallback),
        shape=Shape.LIST,
        metavar="URL=FILE",
        group="Responses",
        help="for a page below URL that is not there: this file of its --static, as one-page sites want it",
        differs=_NEW,
    )
    static_max_age: float = option(
        0.0,
        read=seconds,
        metavar="TIME",
        group="Responses",
        help="clients may keep files of --static for so long; pages they ask for again; 0: nothing is said",
        differs=_NEW,
    )
    limit_static: int | None = option(
        None,
        read=maybe(whole(0, 2**31 - 1)),
        metavar="NUMBER",
        unset="as there are files for",
        group="Limits",
        help="the most files of --static that are open at once; further requests wait; 0: any number",
        differs=_NEW,
    )
