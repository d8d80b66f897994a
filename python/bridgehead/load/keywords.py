"""What `load()` takes, for type checkers: a mistyped option is found before it is run.

Not the options: `options.py` has them, with what each of these is read as.

Invariant: it names the fields of `LoadOptions` but the URL and the scenarios, which `load()` names itself.
"""

from collections.abc import Sequence
from typing import TypedDict


class LoadKeywords(TypedDict, total=False):
    """Times are seconds, or have a unit: `"5s"`."""

    uds: str | None
    method: str
    headers: Sequence[str | tuple[str, str]]
    body: str | None
    body_file: str | None
    expect_status: Sequence[int | str]
    expect_body: str | None
    http: str
    streams: int
    connections: int
    rate: float | str | None
    duration: float | str | None
    requests: int | None
    warmup: float | str
    timeout: float | str
    keep_alive: bool
    threads: int
    seed: int
