"""A server on a thread of this process: for an application that the test has in its hands.

Not the server that users run: the test's process, and its GIL, are shared. A test of signals, of memory or of
speed wants a process.

Invariant: leaving the `with` block ends the server, and an error of its thread is the test's.
"""

import logging
import threading
import time
import traceback
from collections.abc import Sequence
from typing import Any

from bridgehead.testing.logs import Logs
from bridgehead.testing.served import STARTUP_SECONDS, STOP_SECONDS, Served

_SERVER, _ACCESS, _LOOP = "bridgehead", "bridgehead.access", "asyncio"
_LOOKS = 0.005


class ServerThread(Served):
    """`bridgehead.Server` with an application, or with the words that name one."""

    def __init__(self, app: Any, *, allow: Sequence[str] = (), **options: Any) -> None:
        super().__init__(allow=tuple(allow))
        self._app = app
        self._options = {"port": 0, "access_log": False, "drain_delay": 0} | options
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="bridgehead-testing", daemon=True)
        self._hearing, self._overhearing = _Hearing(self.logs), _Hearing(self.logs)

    def stop(self) -> None:
        """End it, wait for its thread, and assert that nothing went wrong."""
        self.logs.stops()
        self.server.should_exit = True
        self._thread.join(STOP_SECONDS)
        assert not self._thread.is_alive(), f"still running after {STOP_SECONDS:g} s; it said:\n{self.logs}"
        self._raise()
        self._assert_no_complaints()

    def _start(self) -> None:
        from bridgehead import Config, Server

        self.server = Server(Config(self._app, **self._options))
        # Afterwards: making a configuration sets up the loggers. Access lines are records only where somebody
        # listens; otherwise Rust writes them to the descriptor of stdout.
        for name in (_SERVER, _ACCESS) if self.server.config.access_log else (_SERVER,):
            logging.getLogger(name).addHandler(self._hearing)
        # What the loop says of its tasks; a test may have a loop of its own, on another thread.
        self._overhearing.addFilter(lambda record: record.thread == self._thread.ident)
        logging.getLogger(_LOOP).addHandler(self._overhearing)
        self._thread.start()
        deadline = time.monotonic() + STARTUP_SECONDS
        while not self.server.started:
            self._raise()
            assert self._thread.is_alive(), f"the server ended as it started; it said:\n{self.logs}"
            assert time.monotonic() < deadline, f"not started within {STARTUP_SECONDS:g} s:\n{self.logs}"
            time.sleep(_LOOKS)
        name = self.server.servers[0].sockets[0].getsockname()
        self._address = _address(name, "https" if self.server.config.is_ssl else "http")

    def _run(self) -> None:
        try:
            self.server.run()
        except BaseException as error:
            self._error = error

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _end(self) -> None:
        if self._thread.is_alive():
            self.server.should_exit = True
            self.server.force_exit = True
            self._thread.join(STOP_SECONDS)
        for name in (_SERVER, _ACCESS):
            logging.getLogger(name).removeHandler(self._hearing)
        logging.getLogger(_LOOP).removeHandler(self._overhearing)
        self.logs.end()


class _Hearing(logging.Handler):
    """Lines of the server's loggers."""

    def __init__(self, logs: Logs) -> None:
        super().__init__()
        self._logs = logs

    def emit(self, record: logging.LogRecord) -> None:
        line = getattr(record, "access_line", None)
        said = line if isinstance(line, str) else f"{record.levelname}: {record.getMessage()}"
        lines = said.splitlines()
        if record.exc_info:
            lines += "".join(traceback.format_exception(*record.exc_info)).splitlines()
        for line in lines:
            self._logs.add(line)


def _address(name: Any, scheme: str) -> str:
    if isinstance(name, str):
        return f"unix:{name}"
    host, port = name[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
