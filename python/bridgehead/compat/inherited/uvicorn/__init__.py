"""What a process started under `bridgehead.compat.install()` finds as uvicorn: it installs that, too.

Not a package of its own: it is replaced while it is imported.

Invariant: who imported it holds `bridgehead.compat.uvicorn`.
"""

import sys

from bridgehead import compat
from bridgehead.compat.aliases import named

compat.install()
sys.modules[__name__] = named(__name__, f"bridgehead.compat.{compat.NAME}")
