"""By which route a framework answers a request, where it says so in the scope.

Not a router. FastAPI and Starlette put the route itself there, Litestar its template; others say nothing.

Invariant: nothing is raised, whatever an application has put there.
"""

from collections.abc import Mapping
from typing import Any

_LONGEST = 200


def route_of(scope: Mapping[str, Any]) -> str | None:
    """`/items/{item_id}`, or nothing."""
    try:
        route = scope.get("route")
        found = (
            scope.get("path_template") or getattr(route, "path_format", None) or getattr(route, "path", None)
        )
    except Exception:  # somebody's own object
        return None
    if not isinstance(found, str) or not found:
        return None
    return found[:_LONGEST].encode("unicode_escape").decode()
