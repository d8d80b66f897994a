"""A worker of gunicorn's: `gunicorn -k bridgehead.contrib.gunicorn.BridgeheadWorker app:app`.

Not the processes, which are gunicorn's: it forks them, gives them sockets, and wants to hear that they live.

Invariant: gunicorn's own settings hold, and `CONFIG_KWARGS` of a subclass outranks them.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

from gunicorn.arbiter import Arbiter
from gunicorn.workers.base import Worker

from bridgehead.errors import StartError
from bridgehead.server import Server
from bridgehead.server_config import Config

_LOGGERS = {"uvicorn.error": "error_log", "uvicorn.access": "access_log"}


class BridgeheadWorker(Worker):
    """One process."""

    # Options of Bridgehead's; a subclass says others.
    CONFIG_KWARGS: Mapping[str, Any] = {}

    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, **named)
        self.config = Config("", **_settings(self.cfg), **self.CONFIG_KWARGS)
        _log_as(self.log)

    def init_signals(self) -> None:
        """gunicorn's handlers do nothing for a loop: the server has its own."""
        for each in self.SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        signal.signal(signal.SIGUSR1, self.handle_usr1)
        signal.siginterrupt(signal.SIGUSR1, False)

    def run(self) -> None:
        """Serve until gunicorn says stop."""
        self.config.app = self.wsgi
        server = _Forked(self.config, self)
        try:
            server.run(sockets=[each.sock for each in self.sockets])
        except SystemExit as end:
            if isinstance(end.__cause__, StartError):
                sys.exit(Arbiter.WORKER_BOOT_ERROR)
            raise


class _Forked(Server):
    """A server whose life gunicorn watches."""

    def __init__(self, config: Config, worker: BridgeheadWorker) -> None:
        super().__init__(config)
        self._worker_of_gunicorn = worker
        self._parent = os.getppid()

    async def startup(self, sockets: Any = None) -> None:
        """As any server, and SIGQUIT ends it now."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGQUIT, self.handle_exit, signal.SIGINT, None)
        await super().startup(sockets)

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: gunicorn hears that the loop lives, and an orphan ends."""
        self._worker_of_gunicorn.notify()
        return await super().on_tick(counter) or os.getppid() != self._parent

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - Python hands it over
        """gunicorn has its own word for an end that does not wait."""
        self.should_exit = True
        self.force_exit = self.force_exit or sig == signal.SIGINT


def _settings(cfg: Any) -> dict[str, Any]:
    """What gunicorn was told, in our words."""
    settings = {
        "log_config": None,
        "timeout_keep_alive": cfg.keepalive,
        "timeout_graceful_shutdown": cfg.graceful_timeout,
        "forwarded_allow_ips": cfg.forwarded_allow_ips,
        "backlog": cfg.backlog,
        "limit_target": cfg.limit_request_line or None,
        "limit_headers": cfg.limit_request_fields,
    }
    if cfg.is_ssl:
        settings |= {
            "ssl_keyfile": cfg.keyfile,
            "ssl_certfile": cfg.certfile,
            "ssl_ca_certs": cfg.ca_certs,
            "ssl_cert_reqs": cfg.cert_reqs,
        }
    return {name: value for name, value in settings.items() if value is not None or name == "log_config"}


def _log_as(log: Any) -> None:
    """Lines go where gunicorn's go."""
    import logging

    for name, theirs in _LOGGERS.items():
        ours, wanted = logging.getLogger(name), getattr(log, theirs)
        ours.handlers = wanted.handlers
        ours.setLevel(wanted.level)
        ours.propagate = False
