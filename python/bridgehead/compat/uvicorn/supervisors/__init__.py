"""`uvicorn.supervisors`: what programs start by themselves to have a server in other processes.

Not what `workers` and `reload` do here (`bridgehead.supervisor`, `bridgehead.reload`), which lose no request:
these run whatever function they are given, with sockets that all processes share, as uvicorn's do.

Invariant: each child runs the target that it was given, and is gone when its supervisor is.
"""

from bridgehead.compat.later import modules
from bridgehead.compat.uvicorn.supervisors.basereload import BaseReload as BaseReload
from bridgehead.compat.uvicorn.supervisors.basereload import WatchedReload as ChangeReload
from bridgehead.compat.uvicorn.supervisors.multiprocess import Multiprocess

__all__ = ["ChangeReload", "Multiprocess"]

__getattr__ = modules(__name__, "basereload", "multiprocess", "statreload", "watchfilesreload")
