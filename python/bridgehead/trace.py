"""What `BRIDGEHEAD_TRACE` asks for: lines for those who look for a fault in the server itself.

Not an option: nobody leaves it on, and what the lines say may change at any time.
"""

from collections.abc import Callable, Mapping

VARIABLE = "BRIDGEHEAD_TRACE"
_KINDS = ("drive",)


def drives(environ: Mapping[str, str], *, ours: bool) -> Callable[[str], None] | None:
    """Who is told of each drive of a coroutine; None: nobody. Only drives of our own can be told of."""
    if "drive" not in _wanted(environ):
        return None
    from bridgehead import log  # not for those who only read settings

    if not ours:
        log.logger().warning(
            "%s=drive shows nothing, since no drive of ours runs requests: see --task-impl.", VARIABLE
        )
    return log.trace


def mistakes(environ: Mapping[str, str]) -> list[str]:
    """A sentence for each word that asks for nothing."""
    unknown = [word for word in _wanted(environ) if word not in _KINDS]
    return [f"{VARIABLE}={word} traces nothing; there is {', '.join(_KINDS)}" for word in unknown]


def _wanted(environ: Mapping[str, str]) -> list[str]:
    return environ.get(VARIABLE, "").replace(",", " ").split()
