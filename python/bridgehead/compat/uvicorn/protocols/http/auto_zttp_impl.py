"""`uvicorn.protocols.http.auto_zttp_impl`: a name to import.

Invariant: it is refused where it is put to work.
"""

from bridgehead.compat.uvicorn.protocols.foreign import Foreign


class AutoZttpProtocol(Foreign):
    """uvicorn's."""
