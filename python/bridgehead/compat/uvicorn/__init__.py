"""uvicorn's names, served by Bridgehead: what `import uvicorn` gives after `bridgehead.compat.install()`.

Not uvicorn: what cannot be honoured here is refused with a word that says so.

Invariant: a name that is here does what it does there, or raises.
"""

from bridgehead.compat.later import modules
from bridgehead.compat.uvicorn.config import Config
from bridgehead.compat.uvicorn.main import main, run
from bridgehead.compat.uvicorn.server import Server

# Programs compare it: it is the version whose names and meanings are here, and not Bridgehead's.
__version__ = "0.54.0"
__all__ = ["Config", "Server", "main", "run"]

__getattr__ = modules(
    __name__,
    *("_compat", "_subprocess", "_types", "config", "importer", "lifespan", "logging", "loops", "middleware"),
    *("protocols", "server", "supervisors"),
)
