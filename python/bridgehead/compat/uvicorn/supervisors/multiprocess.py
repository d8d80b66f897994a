"""`uvicorn.supervisors.multiprocess`: several processes with one target, replaced when they die.

Not `serve --workers` (`bridgehead.supervisor`), in which no worker holds up another's clients.

Invariant: there are as many processes as `processes_num` says until `should_exit` is set, and then none.
"""

import os
import signal
import threading
from collections.abc import Callable
from multiprocessing import Pipe
from socket import socket

from bridgehead import log
from bridgehead.compat.uvicorn._subprocess import get_subprocess
from bridgehead.compat.uvicorn.config import STARTUP_FAILURE, Config
from bridgehead.compat.uvicorn.config import logger as logger
from bridgehead.compat.uvicorn.server import Server

SIGNALS = {
    getattr(signal, f"SIG{name}"): name
    for name in ("INT", "TERM", "HUP", "QUIT", "TTIN", "TTOU", "USR1", "USR2")
}
_LOOK = 0.5  # seconds between two looks at signals and processes, as in uvicorn
_START_LOOK = 0.1

Run = Callable[[list[socket]], None]
# Until 0.50 the target came before the sockets; since then there is none.
Sockets = list[socket] | Run | None


def _parted(sockets: Sockets, target: Run | list[socket] | None) -> tuple[list[socket], Run | None]:
    """Which is which, in the order of either."""
    if callable(sockets) or isinstance(target, list):
        sockets, target = target, sockets
    return sockets or [], target  # type: ignore[return-value]


class Process:
    """One process. It says that it lives when it is asked."""

    def __init__(
        self, config: Config, sockets: Sockets = None, target: Run | list[socket] | None = None
    ) -> None:
        shared, self.real_target = _parted(sockets, target)
        self.config = config
        self._server: Server | None = None
        self.parent_conn, self.child_conn = Pipe()
        self.process = get_subprocess(config, self.target, shared)

    @property
    def server(self) -> Server:
        """What is run where no target was given."""
        if self._server is None:
            self._server = Server(config=self.config)
        return self._server

    def target(self, sockets: list[socket] | None = None) -> None:
        """In the child: answer whoever asks, and serve."""
        threading.Thread(target=self.always_pong, daemon=True).start()
        if self.real_target is None:
            self.server.run(sockets)
        else:
            self.real_target(sockets or [])

    def pong(self) -> None:
        """In the child: answer one question, by whether clients are let in."""
        self.child_conn.recv()
        self.child_conn.send(self.real_target is not None or self.server.started)

    def always_pong(self) -> None:
        """In the child: answer whoever asks."""
        while True:
            self.pong()

    def ping(self, timeout: float = 5) -> bool:
        """Whether it answers within the time."""
        return self._ask(timeout) is not None

    def is_ready(self, timeout: float = 5) -> bool:
        """Whether it answers that clients are let in."""
        return self._ask(timeout) is True

    def is_alive(self, timeout: float = 5) -> bool:
        """Whether it is there and answers."""
        return self.process.is_alive() and self.ping(timeout)

    def wait_until_ready(self, timeout: float, should_exit: threading.Event | None = None) -> bool:
        """Whether it came up within the time."""
        told = should_exit or threading.Event()
        for _ in range(max(int(timeout / _START_LOOK), 1)):
            if not self.process.is_alive() or self.is_ready(_START_LOOK):
                break
            if told.wait(_START_LOOK):
                return False
        return self.process.is_alive() and self.is_ready(_START_LOOK)

    def start(self) -> None:
        """Begin."""
        self.process.start()
        # Only the child has its end now: whoever waits for an answer learns at once that it has died.
        self.child_conn.close()

    def terminate(self) -> None:
        """Tell it to end."""
        if self.process.exitcode is None and self.process.pid is not None:
            os.kill(self.process.pid, signal.SIGTERM)
            log.logger().info("Terminated child process [%s]", self.process.pid)
            self._hang_up()

    def kill(self) -> None:
        """End it now."""
        self.process.kill()
        self._hang_up()

    def join(self) -> None:
        """Wait for its end."""
        log.logger().info("Waiting for child process [%s]", self.process.pid)
        self.process.join()

    @property
    def pid(self) -> int | None:
        """Its number, once it has begun."""
        return self.process.pid

    @property
    def exitcode(self) -> int | None:
        """How it ended."""
        return self.process.exitcode

    def _ask(self, timeout: float) -> bool | None:
        try:
            self.parent_conn.send(b"ping")
            return bool(self.parent_conn.recv()) if self.parent_conn.poll(timeout) else None
        except (OSError, EOFError):
            return None

    def _hang_up(self) -> None:
        self.parent_conn.close()
        self.child_conn.close()


class Multiprocess:
    """Holds the processes. Programs override its steps."""

    def __init__(
        self, config: Config, sockets: Sockets = None, target: Run | list[socket] | None = None
    ) -> None:
        self.sockets, self.target = _parted(sockets, target)
        self.config = config
        self.processes_num = int(config.workers or 1)
        self.processes: list[Process] = []
        self.should_exit = threading.Event()
        self.signal_queue: list[int] = []
        for each in SIGNALS:
            signal.signal(each, lambda number, _: self.signal_queue.append(number))

    def run(self) -> None:
        """Until told to stop."""
        log.logger().info("Started parent process [%d]", os.getpid())
        self.init_processes()
        while not self.should_exit.wait(_LOOK):
            self.handle_signals()
            self.keep_subprocess_alive()
        self.terminate_all()
        self.join_all()
        log.logger().info("Stopping parent process [%d]", os.getpid())

    def init_processes(self) -> None:
        """Start all."""
        self.processes += [self._started() for _ in range(self.processes_num)]

    def terminate_all(self) -> None:
        """Tell all to end."""
        for process in self.processes:
            process.terminate()

    def join_all(self) -> None:
        """Wait for all."""
        for process in self.processes:
            process.join()

    def restart_all(self) -> None:
        """Replace each by one that is ready before it goes."""
        for place, old in enumerate(self.processes):
            if self.should_exit.is_set():
                return
            new = self._started()
            if not new.wait_until_ready(self.config.timeout_worker_healthcheck, self.should_exit):
                new.kill()
                new.join()
                log.logger().error(
                    "Child process [%s] was not ready in time; [%s] is kept.", new.pid, old.pid
                )
                return
            old.terminate()
            old.join()
            self.processes[place] = new

    def keep_subprocess_alive(self) -> None:
        """Replace who has died or does not answer; end where one could not start."""
        for place, process in enumerate(self.processes):
            if self.should_exit.is_set() or process.is_alive(timeout=self.config.timeout_worker_healthcheck):
                continue
            process.kill()
            process.join()
            if process.exitcode == STARTUP_FAILURE:
                log.logger().error(
                    "Child process [%s] failed to start, stopping the parent process.", process.pid
                )
                self.should_exit.set()
                return
            log.logger().info("Child process [%s] died", process.pid)
            self.processes[place] = self._started()

    def handle_signals(self) -> None:
        """Do what the signals since the last look ask for."""
        while self.signal_queue:
            name = SIGNALS[self.signal_queue.pop(0)]
            handler = getattr(self, f"handle_{name.lower()}", None)
            if handler is not None:
                log.logger().info("Received SIG%s.", name)
                handler()

    def handle_int(self) -> None:
        """End."""
        self.should_exit.set()

    def handle_term(self) -> None:
        """End."""
        self.should_exit.set()

    def handle_hup(self) -> None:
        """Replace all."""
        self.restart_all()

    def handle_ttin(self) -> None:
        """One more."""
        self.processes_num += 1
        self.processes.append(self._started())

    def handle_ttou(self) -> None:
        """One less, but the last."""
        if self.processes_num > 1:
            self.processes_num -= 1
            process = self.processes.pop()
            process.terminate()
            process.join()

    def _started(self) -> Process:
        process = Process(self.config, self.sockets, self.target)
        process.start()
        return process
