"""`uvicorn.logging`: the formatters that log configurations name.

Invariant: they are those of `bridgehead.formatters`, which make the same lines.
"""

from bridgehead.formatters import TRACE as TRACE_LOG_LEVEL
from bridgehead.formatters import AccessFormatter, ColourizedFormatter, DefaultFormatter

__all__ = ["TRACE_LOG_LEVEL", "AccessFormatter", "ColourizedFormatter", "DefaultFormatter"]
