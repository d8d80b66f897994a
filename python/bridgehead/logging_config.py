"""`LOGGING_CONFIG`: what our loggers look like as a dictionary, for programs that change uvicorn's in place.

Not what sets them up as long as nobody changed it (`loggers.py` does, with more options).

Invariant: a program that changes it gets what it says, whether it hands it over or not.
"""

from copy import deepcopy
from typing import Any


def _stream(formatter: str, stream: str) -> dict[str, str]:
    return {"class": "logging.StreamHandler", "formatter": formatter, "stream": f"ext://sys.{stream}"}


def _formatter(name: str, template: str) -> dict[str, Any]:
    return {"()": f"bridgehead.formatters.{name}", "fmt": f"%(levelprefix)s {template}", "use_colors": None}


LOGGING_CONFIG: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "default": _formatter("DefaultFormatter", "%(message)s"),
        "access": _formatter("AccessFormatter", '%(client_addr)s - "%(request_line)s" %(status_code)s'),
    },
    "handlers": {"default": _stream("default", "stderr"), "access": _stream("access", "stdout")},
    "loggers": {
        "uvicorn": {"handlers": ["default"], "level": "INFO", "propagate": False},
        "uvicorn.error": {"level": "INFO"},
        "uvicorn.access": {"handlers": ["access"], "level": "INFO", "propagate": False},
    },
}

_AS_MADE = deepcopy(LOGGING_CONFIG)


def changed() -> dict[str, Any] | None:
    """The dictionary, if a program has changed it."""
    return None if LOGGING_CONFIG == _AS_MADE else LOGGING_CONFIG
