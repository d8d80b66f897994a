"""A worker of gunicorn's: `gunicorn -k bridgehead.contrib.gunicorn.BridgeheadWorker app:app`.

Not the processes, which are gunicorn's: it forks them, gives them sockets, and wants to hear that they live.

Invariant: gunicorn's own settings hold, and `CONFIG_KWARGS` of a subclass outranks them.
"""

import asyncio
import logging
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
_LONGEST_TARGET = 65_534  # what hyper takes; 0 is no bound in gunicorn
_MOST_HEADERS = 10_000  # what may be asked for; gunicorn has 32768 for 0


class BridgeheadWorker(Worker):
    """One process. Its steps have the names of uvicorn's, for subclasses that know those."""

    # Options of Bridgehead's; a subclass says others.
    CONFIG_KWARGS: Mapping[str, Any] = {}

    _server: "_Forked | None" = None

    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, **named)
        _log_as(self.log)  # before a configuration looks at what there is, or puts its own there
        given = {"app": "", "callback_notify": self.callback_notify, "timeout_notify": 0}
        self.config = Config(**{**given, **_settings(self.cfg), **self.CONFIG_KWARGS})

    def init_signals(self) -> None:
        """gunicorn's handlers do nothing for a loop: the server has its own."""
        for each in self.SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        signal.signal(signal.SIGUSR1, self.handle_usr1)
        signal.siginterrupt(signal.SIGUSR1, False)

    def run(self) -> None:
        """Serve until gunicorn says stop."""
        _tell_of_unheeded(self.cfg, self.log)
        self.config.app = self.wsgi
        self._server = _Forked(self.config, self)
        try:
            self._server.run()
        except SystemExit as end:
            if isinstance(end.__cause__, StartError):
                sys.exit(Arbiter.WORKER_BOOT_ERROR)
            raise

    async def _serve(self) -> None:
        """What runs on the loop; a subclass may do more, before and after."""
        assert self._server is not None, "`run` has made it"
        self._install_sigquit_handler()
        await self._server.serve_here([each.sock for each in self.sockets])

    def _install_sigquit_handler(self) -> None:
        """gunicorn's SIGQUIT is an end that does not wait."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGQUIT, self.handle_exit, signal.SIGQUIT, None)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """SIGQUIT came, or a signal for which a subclass has asked: the server hears the rest by itself."""
        super().handle_exit(sig, frame)
        if sig == signal.SIGQUIT and self._server is not None:
            self._server.handle_exit(signal.SIGINT, frame)

    async def callback_notify(self) -> None:
        """The loop lives: gunicorn replaces a worker that does not say so."""
        self.notify()


class _Forked(Server):
    """A server whose life gunicorn watches."""

    def __init__(self, config: Config, worker: BridgeheadWorker) -> None:
        super().__init__(config)
        self._worker_of_gunicorn = worker
        self._parent = os.getppid()

    async def serve(self, sockets: Any = None) -> None:  # noqa: ARG002 - the worker has them
        """As the worker has it: it calls `serve_here`."""
        await self._worker_of_gunicorn._serve()

    async def serve_here(self, sockets: Any) -> None:
        """As any server."""
        await super().serve(sockets)

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: an orphan ends."""
        return await super().on_tick(counter) or os.getppid() != self._parent

    async def _notify(self, counter: int) -> None:
        """gunicorn's --timeout may be a second: it hears of each tick, unless somebody asked for less."""
        if self.config.timeout_notify:
            await super()._notify(counter)
        elif self.config.callback_notify is not None:
            await self.config.callback_notify()

    def _spend(self, reason: str) -> None:
        """gunicorn starts another."""
        logging.getLogger("uvicorn.error").info("Worker [%d] %s: it ends.", os.getpid(), reason)
        self.should_exit = True

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
        "backlog": cfg.backlog or None,
        "limit_target": cfg.limit_request_line or _LONGEST_TARGET,
        "limit_headers": min(cfg.limit_request_fields or _MOST_HEADERS, _MOST_HEADERS),
        "limit_max_requests": cfg.max_requests or None,
        "limit_max_requests_jitter": cfg.max_requests_jitter,
    }
    if cfg.is_ssl:
        settings |= {
            "ssl_keyfile": cfg.keyfile,
            "ssl_certfile": cfg.certfile,
            "ssl_ca_certs": cfg.ca_certs,
            "ssl_cert_reqs": cfg.cert_reqs,
            "ssl_ciphers": cfg.ciphers,
        }
    return {name: value for name, value in settings.items() if value is not None or name == "log_config"}


def _tell_of_unheeded(cfg: Any, log: Any) -> None:
    """Of what was asked for in gunicorn's words and has no counterpart."""
    field = cfg.settings["limit_request_field_size"]
    if field.value != field.default:
        log.warning(
            "limit_request_field_size changes nothing here: limit_header_bytes, in CONFIG_KWARGS, "
            "bounds the header lines of a request together"
        )


def _log_as(log: Any) -> None:
    """Lines go where gunicorn's go."""
    for name, theirs in _LOGGERS.items():
        ours, wanted = logging.getLogger(name), getattr(log, theirs)
        ours.handlers = wanted.handlers
        ours.setLevel(wanted.level)
        ours.propagate = False
