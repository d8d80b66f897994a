"""`uvicorn.workers`: gunicorn's workers under the names that its command lines have.

Not how they serve (`bridgehead.contrib.gunicorn`).

Invariant: they are Bridgehead's worker, whatever parser their name says.
"""

from bridgehead.contrib.gunicorn import BridgeheadWorker


class UvicornWorker(BridgeheadWorker):
    """For `gunicorn -k uvicorn.workers.UvicornWorker`."""

    CONFIG_KWARGS = {"loop": "auto", "http": "auto"}  # noqa: RUF012 - subclasses replace it


class UvicornH11Worker(UvicornWorker):
    """For `gunicorn -k uvicorn.workers.UvicornH11Worker`."""

    CONFIG_KWARGS = {"loop": "asyncio", "http": "h11"}  # noqa: RUF012 - subclasses replace it
