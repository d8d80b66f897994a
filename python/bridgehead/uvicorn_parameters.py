"""What `uvicorn.Config` takes, in its order and with its defaults: a table, of which the signatures are made.

Not our options (`bridgehead.config`), which are added behind, by keyword.

Invariant: a name that neither has is a `TypeError`, as of any function.
"""

import inspect
import ssl
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from bridgehead.config import OPTIONS
from bridgehead.logging_config import LOGGING_CONFIG

_REQUIRED = inspect.Parameter.empty

UVICORNS: Mapping[str, Any] = MappingProxyType(
    {
        "app": _REQUIRED,
        "host": "127.0.0.1",
        "port": 8000,
        "uds": None,
        "fd": None,
        "loop": "auto",
        "http": "auto",
        "http2": False,
        "ws": "auto",
        "ws_max_size": 16 * 1024 * 1024,
        "ws_max_queue": 32,
        "ws_ping_interval": 20.0,
        "ws_ping_timeout": 20.0,
        "ws_per_message_deflate": True,
        "lifespan": "auto",
        "env_file": None,
        "log_config": LOGGING_CONFIG,
        "log_level": None,
        "access_log": True,
        "use_colors": None,
        "interface": "auto",
        "reload": False,
        "reload_dirs": None,
        "reload_delay": 0.25,
        "reload_includes": None,
        "reload_excludes": None,
        "workers": None,
        "proxy_headers": True,
        "server_header": True,
        "date_header": True,
        "forwarded_allow_ips": None,
        "root_path": "",
        "limit_concurrency": None,
        "limit_max_requests": None,
        "limit_max_requests_jitter": 0,
        "backlog": 2048,
        "timeout_keep_alive": 5,
        "timeout_notify": 30,
        "timeout_graceful_shutdown": None,
        "timeout_worker_healthcheck": 5,
        "callback_notify": None,
        "ssl_keyfile": None,
        "ssl_certfile": None,
        "ssl_keyfile_password": None,
        "ssl_version": ssl.PROTOCOL_TLS_SERVER,
        "ssl_cert_reqs": ssl.CERT_NONE,
        "ssl_ca_certs": None,
        "ssl_ciphers": None,
        "ssl_context_factory": None,
        "headers": None,
        "factory": False,
        "h11_max_incomplete_event_size": None,
        "reset_contextvars": False,
    }
)
# What is no option of ours: kept by `Config` itself.
KEPT = frozenset({"timeout_notify", "callback_notify", "ssl_context_factory"})


# Of a server that the program has, which `run` does not give it.
_OF_A_SERVER = frozenset({"timeout_notify", "callback_notify"})


def _signature(*, named: bool) -> inspect.Signature:
    kind = inspect.Parameter.KEYWORD_ONLY if named else inspect.Parameter.POSITIONAL_OR_KEYWORD
    left_out = {"app", *(_OF_A_SERVER if named else ())}
    first = inspect.Parameter("app", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    theirs = [
        inspect.Parameter(name, kind, default=default)
        for name, default in UVICORNS.items()
        if name not in left_out
    ]
    ours = [
        inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=None)
        for option in OPTIONS
        if option.name not in UVICORNS
    ]
    return inspect.Signature([first, *theirs, *ours])


OF_CONFIG = _signature(named=False)
OF_RUN = _signature(named=True)


def of_a_method(signature: inspect.Signature) -> inspect.Signature:
    """With `self` before the rest."""
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return signature.replace(parameters=[itself, *signature.parameters.values()])
