"""`uvicorn.supervisors.watchfilesreload`: changes of which the system tells.

Invariant: it is what `ChangeReload` stands for.
"""

from bridgehead.compat.uvicorn.supervisors.basereload import WatchedReload as WatchFilesReload

__all__ = ["WatchFilesReload"]
