"""`uvicorn.protocols.http.httptools_impl`: names to import.

Invariant: a protocol is refused where it is put to work.
"""

import re

from bridgehead.compat.uvicorn.protocols.foreign import Foreign
from bridgehead.compat.uvicorn.protocols.foreign import ForeignCycle as RequestResponseCycle
from bridgehead.compat.uvicorn.protocols.http.flow_control import CLOSE_HEADER as CLOSE_HEADER
from bridgehead.compat.uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT as HIGH_WATER_LIMIT
from bridgehead.compat.uvicorn.protocols.http.flow_control import FlowControl as FlowControl
from bridgehead.compat.uvicorn.protocols.http.flow_control import service_unavailable as service_unavailable
from bridgehead.compat.uvicorn.protocols.phrases import PHRASES

HEADER_RE = re.compile(rb'[\x00-\x1f\x7f()<>@,;:\[\]={} \t\\"]')
HEADER_VALUE_RE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
STATUS_LINE: dict[int, bytes] = {
    status: f"HTTP/1.1 {status} {words}\r\n".encode() for status, words in PHRASES.items()
}


__all__ = ["HttpToolsProtocol", "RequestResponseCycle"]


class HttpToolsProtocol(Foreign):
    """uvicorn's."""
