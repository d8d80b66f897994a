"""The words that follow a status in HTTP/1, where those of Python's `http.HTTPStatus` are not hyper's.

Not taken from there when a server starts, which would load that module for five words.

Invariant: they are what `http.HTTPStatus` of the running Python says, as they are under uvicorn.
"""

import sys

_ALWAYS = ((203, "Non-Authoritative Information"), (418, "I'm a Teapot"))
# Until RFC 9110 came to be known.
_BEFORE_3_13 = (
    (413, "Request Entity Too Large"),
    (414, "Request-URI Too Long"),
    (416, "Requested Range Not Satisfiable"),
)
_SINCE_3_13 = ((413, "Content Too Large"), (422, "Unprocessable Content"))

REASONS: tuple[tuple[int, str], ...] = _ALWAYS + (
    _SINCE_3_13 if sys.version_info >= (3, 13) else _BEFORE_3_13
)
