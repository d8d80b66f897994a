"""Sets its own handlers for SIGTERM and SIGINT when it is imported, as many programs do."""

from __future__ import annotations

from lifecycle_app import app, install

install("import")

__all__ = ["app"]
