"""What `--access-log-format` may say: text with fields in braces, read once at the start.

Not how a field is written: Rust does that (`access_layout.rs`), and knows the same names.

Invariant: a format that was read has only fields that exist.
"""

import re

from bridgehead.errors import StartError, did_you_mean

# What one field is: a kind and a word. Literal text is of the kind `text`.
Piece = tuple[str, str]

FIELDS = (
    "bytes_in",
    "bytes_out",
    "client",
    "duration",
    "method",
    "protocol",
    "request_id",
    "status",
    "target",
    "time",
    "traceparent",
)
# Fields that name a header: of the request, of the response.
HEADERS = ("header", "response")

# What an object of JSON has when no format says otherwise.
USUAL = ("client", "method", "target", "protocol", "status", "duration", "bytes_in", "bytes_out")
NAMES = ("request_id", "traceparent")

_PIECE = re.compile(
    r"(?P<brace>\{\{|\}\})"
    r"|\{(?P<kind>[^{}]*)\{(?P<header>[^{}]*)\}\}"
    r"|\{(?P<field>[^{}]*)\}"
    r"|(?P<text>[^{}]+)"
)
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, section 5.6.2
_HINT = "fields are in braces, as {status} or {header{user-agent}}; a brace itself is written twice"


def parse(text: str) -> tuple[Piece, ...]:
    """The pieces of a format; `StartError` names what is wrong with it."""
    if any(not letter.isprintable() and letter != "\t" for letter in text):
        raise StartError("a format is one line of printable characters", _HINT)
    pieces: list[Piece] = []
    at = 0
    while at < len(text):
        found = _PIECE.match(text, at)
        if found is None:
            raise StartError(f"the brace at character {at + 1} of {text!r} has no partner", _HINT)
        pieces.append(_piece(found))
        at = found.end()
    return tuple(pieces)


def read(value: object) -> str:
    """An option's reader: the format as it was written, judged."""
    if not isinstance(value, str) or not value.strip():
        raise StartError(f"{value!r} is not a format", _HINT)
    if all(kind == "text" for kind, _ in parse(value)):
        raise StartError(f"{value!r} has no field: each line would be the same", _HINT)
    return value


def _piece(found: re.Match[str]) -> Piece:
    if brace := found["brace"]:
        return ("text", brace[0])
    if found["header"] is not None:
        return (_known(found["kind"].strip(), HEADERS), _header(found["header"].strip()))
    if found["field"] is not None:
        return ("field", _known(found["field"].strip(), FIELDS))
    return ("text", found["text"])


def _known(name: str, names: tuple[str, ...]) -> str:
    if name in names:
        return name
    if name in HEADERS:
        raise StartError(f"the field {name!r} needs a header's name", f"write {{{name}{{user-agent}}}}")
    every = (*FIELDS, *HEADERS)
    hint = did_you_mean(name, every, otherwise=f"the fields are {', '.join(every)}")
    raise StartError(f"there is no field {name!r}", hint)


def _header(name: str) -> str:
    if _TOKEN.fullmatch(name):
        return name.lower()
    raise StartError(f"{name!r} is not the name of a header", "write it as {header{user-agent}}")
