"""`uvicorn.protocols.websockets.auto`: a name to import.

Invariant: it is refused where it is put to work.
"""

from bridgehead.compat.uvicorn.protocols.foreign import Foreign


class AutoWebSocketsProtocol(Foreign):
    """uvicorn's."""
