"""What a process started under `bridgehead.compat.install()` finds as uvicorn: it installs that, too.

Not a package of its own: it is replaced while it is imported.

Invariant: who imported it holds `bridgehead.compat.uvicorn`.
"""

import sys
from importlib import import_module

from bridgehead import compat

compat.install()
sys.modules[__name__] = import_module(f"bridgehead.compat.{compat.NAME}")
