"""Private names that uvicorn's own tests import, for the tests beside them.

Not a part of `bridgehead.compat`: nothing but those tests asks for these.
"""

from __future__ import annotations

import sys
from types import ModuleType

from bridgehead import compat

compat.install()

from uvicorn.middleware import wsgi  # noqa: E402
from uvicorn.supervisors import basereload  # noqa: E402

wsgi._WSGIMiddleware = wsgi.WSGIMiddleware
basereload._display_path = str
flow_control = ModuleType("uvicorn.protocols.http.flow_control")
flow_control.HIGH_WATER_LIMIT = 65_536  # type: ignore[attr-defined]
sys.modules[flow_control.__name__] = flow_control
