"""`uvicorn.protocols.websockets.websockets_sansio_impl`: a name to import.

Invariant: it is refused where it is put to work.
"""

from bridgehead.compat.uvicorn.protocols.foreign import Foreign
from bridgehead.compat.uvicorn.protocols.phrases import PHRASES as STATUS_PHRASES

__all__ = ["STATUS_PHRASES", "WebSocketsSansIOProtocol"]


class WebSocketsSansIOProtocol(Foreign):
    """uvicorn's."""
