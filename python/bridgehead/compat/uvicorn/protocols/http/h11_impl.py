"""`uvicorn.protocols.http.h11_impl`: a name to import.

Invariant: it is refused where it is put to work.
"""

from bridgehead.compat.uvicorn.protocols.foreign import Foreign


class H11Protocol(Foreign):
    """uvicorn's."""
