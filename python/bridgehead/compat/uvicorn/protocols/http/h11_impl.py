"""`uvicorn.protocols.http.h11_impl`: names to import.

Invariant: a protocol is refused where it is put to work.
"""

from bridgehead.compat.uvicorn.protocols.foreign import Foreign
from bridgehead.compat.uvicorn.protocols.foreign import ForeignCycle as RequestResponseCycle
from bridgehead.compat.uvicorn.protocols.http.flow_control import CLOSE_HEADER as CLOSE_HEADER
from bridgehead.compat.uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT as HIGH_WATER_LIMIT
from bridgehead.compat.uvicorn.protocols.http.flow_control import FlowControl as FlowControl
from bridgehead.compat.uvicorn.protocols.http.flow_control import service_unavailable as service_unavailable
from bridgehead.compat.uvicorn.protocols.phrases import PHRASES

STATUS_PHRASES: dict[int, bytes] = {status: words.encode() for status, words in PHRASES.items()}


__all__ = ["H11Protocol", "RequestResponseCycle"]


class H11Protocol(Foreign):
    """uvicorn's."""
