"""`--reload`: a parent that holds the sockets, and starts a new child when a file of the application changes.

Not the watching (Rust), not one child's life (`offspring.py`). It never imports the application.

Invariant: the sockets listen from the start to the end, whatever becomes of the application.
"""

import os
import selectors
import signal
import sys
import threading
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from importlib.util import cache_from_source

from bridgehead import log, pidfile
from bridgehead._native import Watcher
from bridgehead.caught import Caught
from bridgehead.channel import Order
from bridgehead.config import Config
from bridgehead.cores import workers
from bridgehead.errors import StartError
from bridgehead.home import Home
from bridgehead.identity import identity, set_umask
from bridgehead.offspring import Offspring, for_a_child, lent
from bridgehead.sockets import Bound, bind
from bridgehead.stand_in import StandIn
from bridgehead.watched import Watched, watched

# A developer waits for it: requests get 70 % of this, and are then cancelled.
_GRACE = 0.5
_SHOWN = 5  # changed files; more are not read

_FAILED = "The application did not start: see the terminal. It is started again when a file changes."
_ENDED = "The application has ended by itself: see the terminal. It is started again when a file changes."


def run(config: Config, environ: Mapping[str, str]) -> signal.Signals:
    """Serve until told to stop, in children with this environment; the signal that said so."""
    if not isinstance(config.app, str):
        message = "reload needs the words that name the application: another process imports it"
        raise StartError(message, 'give them instead of the object: "module:app"')
    if threading.current_thread() is not threading.main_thread():
        raise StartError("reload needs the main thread, the only one that signals come to", "call it there")
    if (several := workers(config)) > 1:
        # As in uvicorn: WEB_CONCURRENCY is the deployment's, and reload the developer's.
        log.logger().warning("Reload serves from one process, so %s workers are not started.", several)
        config = replace(config, workers=1)
    set_umask(config)
    what = watched(config)
    with ExitStack() as stack:
        if config.ssl_self_signed:
            from bridgehead.certificates import made_once

            config = made_once(config, stack)
        bound = bind(config.addresses(), backlog=config.backlog)
        for each in bound:
            stack.callback(each.close)
        pidfile.write(config.pidfile)
        stack.callback(pidfile.remove, config.pidfile)
        caught = stack.enter_context(Caught([signal.SIGINT, signal.SIGTERM, signal.SIGCHLD]))
        watcher = stack.enter_context(closing(Watcher(what)))
        _announce(what)
        return _Reloader(config, environ, bound).run(caught, watcher)


def _announce(what: Watched) -> None:
    log.logger().info("Will watch for changes in these directories: %s", [*what.folders])
    system = "inotify" if sys.platform == "linux" else "the system's events"
    log.reloader_started(os.getpid(), "polling" if what.polls else system)


class _Reloader:
    def __init__(self, config: Config, environ: Mapping[str, str], bound: list[Bound]) -> None:
        listeners = [each.socket for each in bound]
        grace = min(_GRACE, config.timeout_graceful_shutdown)
        order = replace(for_a_child(lent(config, bound)), timeout_graceful_shutdown=grace)
        self._order = Order(config=order, path=sys.path)
        self._home = Home(environ=environ, identity=identity(config))
        self._listeners = listeners
        self._selector = selectors.DefaultSelector()
        self._stand_in = StandIn(self._selector, listeners)
        self._child: Offspring | None = None
        self._changed: set[str] = set()  # what makes a new start due
        self._told: signal.Signals | None = None  # by which the end began

    def run(self, caught: Caught, watcher: Watcher) -> signal.Signals:
        """Until a signal comes; what is left of the last child is ended on the way out."""
        self._selector.register(caught, selectors.EVENT_READ, lambda: self._catch(caught))
        self._selector.register(watcher, selectors.EVENT_READ, lambda: self._look(watcher))
        try:
            self._begin()
            while self._told is None or self._child is not None:
                for key, _ in self._selector.select(self._patience()):
                    key.data()
                self._judge()
        finally:
            if self._child is not None:
                self._child.kill()
            self._stand_in.close()
            self._selector.close()
        log.reloader_finished(os.getpid())
        return self._told

    def _begin(self) -> None:
        """Start the application."""
        self._stand_in.end()
        _forget_bytecode(self._changed)
        self._changed.clear()
        self._child = child = Offspring(self._order, self._listeners, self._home)
        self._selector.register(child, selectors.EVENT_READ, lambda: self._hear(child))

    def _hear(self, child: Offspring) -> None:
        if not child.hear():
            self._ignore(child)

    def _ignore(self, child: Offspring) -> None:
        with suppress(KeyError):  # it has hung up, and is ignored already
            self._selector.unregister(child)

    def _patience(self) -> float | None:
        times = (self._stand_in.patience, self._child.patience if self._child is not None else None)
        return min((each for each in times if each is not None), default=None)

    def _catch(self, caught: Caught) -> None:
        for number in caught.take():
            if number is signal.SIGCHLD:
                continue  # `_judge` looks
            if self._told is not None:
                self._die_by(number)
            self._told = number
            if self._child is not None:
                self._child.stop()

    def _look(self, watcher: Watcher) -> None:
        changed, polling = watcher.take()
        if polling is not None:
            log.logger().warning("Changes are looked for twice a second: %s.", polling)
        if not changed or self._told is not None:
            return
        if self._child is not None:
            self._child.take_back()  # first of all: who knocks now is for the new one
        log.logger().warning("Bridgehead detected changes in %s. Reloading...", _listed(changed))
        self._changed.update(changed)
        if self._child is not None:
            self._child.stop()
        else:
            self._begin()

    def _judge(self) -> None:
        """See what has become of the child, and of time."""
        self._stand_in.expire()
        child = self._child
        if child is None:
            return
        if child.patience == 0.0:
            log.logger().warning("Server process [%d] did not end in time: killed.", child.pid)
            child.kill()
        if child.has_ended():
            self._child = None
            self._ignore(child)
            child.close()
            self._succeed(child)

    def _succeed(self, child: Offspring) -> None:
        """What comes after a child that is gone."""
        if self._told is not None:
            return
        if self._changed:
            self._begin()
        elif child.refused_to_start:
            log.logger().warning("The application did not start. Waiting for a change.")
            self._stand_in.begin(_FAILED)
        else:
            log.logger().error("Server process [%d] %s. Waiting for a change.", child.pid, child.ending)
            self._stand_in.begin(_ENDED)

    def _die_by(self, number: signal.Signals) -> None:
        """A second signal: now, as a worker does."""
        if self._child is not None:
            self._child.kill()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _listed(paths: Iterable[str]) -> str:
    """Some of the paths, as they are seen from here."""
    here = os.path.realpath(os.curdir) + os.sep
    names = [repr(each.removeprefix(here)) for each in paths]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _forget_bytecode(paths: Iterable[str]) -> None:
    """Python takes compiled code for current when the source still has the second and the length it had."""
    for path in paths:
        if path.endswith(".py"):
            with suppress(OSError, NotImplementedError):
                os.unlink(cache_from_source(path))
