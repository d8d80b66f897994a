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
        if not isinstance(found, str) or not found:
            return None
        found = _mount_of(scope, found) + found
    except Exception:  # somebody's own object
        return None
    return found[:_LONGEST].encode("unicode_escape").decode()


def _mount_of(scope: Mapping[str, Any], template: str) -> str:
    """Below what Starlette has mounted the application whose route it is; nothing where that has parameters.

    Only the mount's path as it was asked for is known, and a route is to be one for all that it answers.
    """
    path, outermost = scope.get("root_path"), scope.get("app_root_path")
    if not isinstance(path, str) or not isinstance(outermost, str) or not path.startswith(outermost):
        return ""
    # A mount that is the route itself has its own path in it, and what is below as one parameter more.
    if template.count("{") != len(scope.get("path_params") or ()):
        return ""
    return path[len(outermost) :]
