"""`uvicorn.workers`: gunicorn's workers under the names that its command lines have.

Not how they serve (`bridgehead.contrib.gunicorn`).

Invariant: they are Bridgehead's worker, whatever parser their name says.
"""

from bridgehead.contrib.gunicorn import BridgeheadWorker


class UvicornWorker(BridgeheadWorker):
    """For `gunicorn -k uvicorn.workers.UvicornWorker`."""


class UvicornH11Worker(BridgeheadWorker):
    """For `gunicorn -k uvicorn.workers.UvicornH11Worker`."""

    CONFIG_KWARGS = {"loop": "asyncio"}  # noqa: RUF012 - subclasses replace it
