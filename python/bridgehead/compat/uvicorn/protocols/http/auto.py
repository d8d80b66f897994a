"""`uvicorn.protocols.http.auto`: a name to import.

Invariant: it is refused where it is put to work.
"""

from bridgehead.compat.uvicorn.protocols.foreign import Foreign


class AutoHTTPProtocol(Foreign):
    """uvicorn's."""
