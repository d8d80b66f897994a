"""`uvicorn.protocols.http.zttp_impl`: names to import.

Invariant: a protocol is refused where it is put to work.
"""

from bridgehead.compat.uvicorn.protocols.foreign import Foreign
from bridgehead.compat.uvicorn.protocols.foreign import ForeignCycle as RequestResponseCycle
from bridgehead.compat.uvicorn.protocols.http.flow_control import CLOSE_HEADER as CLOSE_HEADER
from bridgehead.compat.uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT as HIGH_WATER_LIMIT
from bridgehead.compat.uvicorn.protocols.http.flow_control import FlowControl as FlowControl
from bridgehead.compat.uvicorn.protocols.http.flow_control import service_unavailable as service_unavailable

__all__ = ["RequestResponseCycle", "ZttpProtocol"]


class ZttpProtocol(Foreign):
    """uvicorn's."""
