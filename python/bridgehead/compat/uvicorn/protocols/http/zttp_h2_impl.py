"""`uvicorn.protocols.http.zttp_h2_impl`: a name to import.

Invariant: it is refused where it is put to work.
"""

from bridgehead.compat.uvicorn.protocols.foreign import Foreign


class ZttpH2Protocol(Foreign):
    """uvicorn's."""
