"""Which answers of the application are compressed: options, as a part of `Config`.

Not how, which is Rust's (`bridgehead-coding`, and `compression.rs` of the network).
"""

# ruff: noqa: RUF009 (`option` returns a dataclass field, which is what belongs there)

import re
from dataclasses import dataclass

from bridgehead.errors import StartError
from bridgehead.options import Shape, many, option, switch, text
from bridgehead.quantities import Bytes, size
from bridgehead.static_options import StaticOptions

_NEW = "new: uvicorn has no such option"
_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/(?:[a-z0-9!#$&^_.+-]+|\*)|\+[a-z0-9._-]+")

# What becomes much shorter. Pictures, films, archives and WOFF2 are compressed as they are.
USUAL_TYPES = (
    *("text/*", "+json", "+xml", "+text", "application/json", "application/xml", "application/javascript"),
    *("application/x-javascript", "application/x-ndjson", "application/jsonl", "application/graphql"),
    *("application/wasm", "application/yaml", "application/toml", "application/rtf", "application/sql"),
    *("application/openmetrics-text", "application/vnd.ms-fontobject", "font/otf", "font/ttf", "image/bmp"),
    *("image/x-icon", "image/vnd.microsoft.icon"),
)


def _media_type(value: object) -> str:
    kind = text(value).strip().lower()
    if _TYPE.fullmatch(kind):
        return kind
    raise StartError(f"{value!r} is not a media type", "write it as text/html, text/* or +json")


@dataclass(slots=True, kw_only=True, init=False, repr=False, eq=False)  # `Config` has these
class CompressOptions(StaticOptions):
    """Whether, and what."""

    compress: bool = option(
        False,
        read=switch,
        shape=Shape.SWITCH,
        group="Responses",
        help="compress the application's answers by zstd, brotli or gzip; see docs/compression.md",
        differs=_NEW,
    )
    compress_types: tuple[str, ...] = option(
        (),
        read=many(_media_type),
        shape=Shape.LIST,
        flag="--compress-type",
        metavar="TYPE",
        unset="text, JSON, XML, JavaScript and the like",
        group="Responses",
        help="compress these alone: text/html, text/*, +json; several times",
        differs=_NEW,
    )
    compress_min_size: Bytes = option(
        Bytes(1024),
        read=size,
        metavar="SIZE",
        group="Responses",
        help="leave answers that are known to be smaller as they are",
        differs=_NEW,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Compression:
    """What is compressed; read by Rust."""

    types: tuple[str, ...]
    least: int


def wanted(options: CompressOptions) -> Compression | None:
    """What is to be compressed, if anything."""
    if not options.compress:
        return None
    return Compression(types=options.compress_types or USUAL_TYPES, least=options.compress_min_size)
