"""`--reload`: a parent that holds the sockets, and starts new children when a file changes.

Not the watching (Rust), not the children of one version (`generation.py`). It never imports the application.

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
from bridgehead.admin import Desk
from bridgehead.caught import Caught
from bridgehead.channel import Order
from bridgehead.config import Config
from bridgehead.cores import workers
from bridgehead.errors import StartError
from bridgehead.generation import Generation, Staff
from bridgehead.home import Home
from bridgehead.identity import identity, set_umask
from bridgehead.loop_name import in_words
from bridgehead.offspring import Offspring, for_a_child, lent
from bridgehead.reopening import reopen
from bridgehead.rights_trial import insist
from bridgehead.stand_in import StandIn
from bridgehead.supervisor.hired import Hired, Start, Terms
from bridgehead.supervisor.slots import Slots
from bridgehead.terminal import Terminal, is_open
from bridgehead.unheard import SIGNALS
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
    config.loop = in_words(config.loop)
    set_umask(config)
    home = Home(environ=environ, identity=identity(config))
    insist(config, home)
    what = watched(config)
    with ExitStack() as stack:
        if config.ssl_self_signed:
            from bridgehead.certificates import made_once

            config = made_once(config, home.identity, stack)
        pidfile.refuse_another(config.pidfile)
        slots = Slots.bound(config, workers(config))
        stack.callback(slots.close)
        stack.callback(pidfile.remove, pidfile.write(config.pidfile))
        staff = (
            _one(config, home, slots)
            if len(slots) == 1
            else _several(Terms(_short(config), home, slots), stack)
        )
        terminal = Terminal()
        caught = stack.enter_context(Caught(_signals()))
        watcher = stack.enter_context(closing(Watcher(what)))
        _announce(what)
        return _Reloader(staff, slots, terminal).run(caught, watcher)


def _signals() -> list[signal.Signals]:
    ends = [signal.SIGINT, signal.SIGTERM, signal.SIGCHLD]
    told = [signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2]
    # A terminal stops who reads from it in the background: the whole job, a debugger in the child with it.
    return [*ends, *told, *(() if is_open() else (signal.SIGTTIN, signal.SIGTTOU))]


def _short(config: Config) -> Config:
    return replace(config, timeout_graceful_shutdown=min(_GRACE, config.timeout_graceful_shutdown))


def _one(config: Config, home: Home, slots: Slots) -> Staff:
    """It says itself where it is found, and answers operators."""
    order = Order(
        config=for_a_child(lent(_short(config), slots.of(0))), path=sys.path, name=config.calls_itself
    )
    return Staff(count=1, hire=lambda slot, _why: Offspring(order, slots.of(slot), home))


def _several(terms: Terms, stack: ExitStack) -> Staff:
    """Each lets clients in at the others' sockets while those do not."""
    stack.callback(terms.close)
    stack.callback(Desk(terms.config, terms.figures.sheets).close)
    slots = terms.slots

    name = terms.config.calls_itself

    def hire(slot: int, why: Start) -> Hired:
        terms.floor.give()  # those of another version have ended
        return Hired(slot, terms, why)

    return Staff(count=len(slots), hire=hire, announce=lambda: log.serving(slots.labels, name))


def _announce(what: Watched) -> None:
    log.logger().info("Will watch for changes in these directories: %s", [*what.folders])
    system = "inotify" if sys.platform == "linux" else "the system's events"
    log.reloader_started(os.getpid(), "polling" if what.polls else system)


class _Reloader:
    def __init__(self, staff: Staff, slots: Slots, terminal: Terminal) -> None:
        self._staff = staff
        self._selector = selectors.DefaultSelector()
        self._stand_in = StandIn(self._selector, slots.listeners)
        self._generation: Generation | None = None
        self._changed: set[str] = set()
        self._why: Start = "initial"
        self._is_due = False  # whether there is to be a new start
        self._terminal = terminal
        self._told: signal.Signals | None = None  # by which the end began

    def run(self, caught: Caught, watcher: Watcher) -> signal.Signals:
        """Until a signal comes; who is left of the last generation is ended on the way out."""
        self._selector.register(caught, selectors.EVENT_READ, lambda: self._catch(caught))
        self._selector.register(watcher, selectors.EVENT_READ, lambda: self._look(watcher))
        try:
            self._begin()
            while self._told is None or self._generation is not None:
                for key, _ in self._selector.select(self._patience()):
                    key.data()
                self._judge()
        finally:
            if self._generation is not None:
                self._generation.kill()
            self._stand_in.close()
            self._selector.close()
        log.reloader_finished(os.getpid())
        return self._told

    def _begin(self) -> None:
        """Start the application."""
        self._stand_in.end()
        _forget_bytecode(self._changed)
        self._changed.clear()
        self._is_due = False
        self._generation = Generation(self._staff, self._selector, self._why)
        self._why = "reload"

    def _patience(self) -> float | None:
        generation = self._generation
        times = (self._stand_in.patience, generation.patience if generation is not None else None)
        return min((each for each in times if each is not None), default=None)

    def _catch(self, caught: Caught) -> None:
        for number in caught.take():
            if number is signal.SIGCHLD:
                continue  # `_judge` looks
            if number in SIGNALS:
                self._obey(number)
            elif self._told is not None:
                self._die_by(number)
            else:
                self._end(number)

    def _end(self, told: signal.Signals) -> None:
        self._told = told
        if self._generation is not None:
            self._generation.stop()

    def _obey(self, number: signal.Signals) -> None:
        """What ends nothing, unless it says that the terminal is gone."""
        if number is signal.SIGUSR1:
            reopen()
            if self._generation is not None:
                self._generation.reopen()
        elif number is not signal.SIGHUP:
            log.logger().warning("%s is for a server without --reload: nothing is done.", number.name)
        elif self._told is None and self._terminal.is_lost:
            self._end(signal.SIGTERM)
        elif self._told is None:
            if self._generation is not None:
                self._generation.take_back()
            log.logger().info("Received SIGHUP. Reloading...")
            self._start_anew()

    def _start_anew(self) -> None:
        self._is_due = True
        if self._generation is not None:
            self._generation.stop()
        else:
            self._begin()

    def _look(self, watcher: Watcher) -> None:
        changed, has_begun, polling = watcher.take()
        if polling is not None:
            log.logger().warning("Changes are looked for twice a second: %s.", polling)
        if self._told is not None:
            return
        if changed or has_begun:
            # First of all, and before it is known what else changes: who knocks now is for the new ones.
            self._stand_in.end()
            if self._generation is not None:
                self._generation.take_back()
        if has_begun:
            log.logger().debug("Files change. Who connects from here on is for the next version.")
        if not changed:
            return
        log.logger().warning("Bridgehead detected changes in %s. Reloading...", _listed(changed))
        self._changed.update(changed)
        self._start_anew()

    def _judge(self) -> None:
        """See what has become of the children, and of time."""
        self._stand_in.expire()
        generation = self._generation
        if generation is None:
            return
        for child in generation.ended():
            if generation.is_over:
                self._generation = None
                self._succeed(child)
            elif self._told is None and not self._is_due:
                sentence = "Server process [%d] %s. The others serve on until a change."
                log.logger().error(sentence, child.pid, child.ending)

    def _succeed(self, child: Offspring) -> None:
        """What comes after the last one that is gone."""
        if self._told is not None:
            return
        if self._is_due:
            self._begin()
        elif child.refused_to_start:
            log.logger().warning("The application did not start. Waiting for a change.")
            self._stand_in.begin(_FAILED)
        else:
            log.logger().error("Server process [%d] %s. Waiting for a change.", child.pid, child.ending)
            self._stand_in.begin(_ENDED)

    def _die_by(self, number: signal.Signals) -> None:
        """A second signal: now, as a worker does."""
        if self._generation is not None:
            self._generation.kill()
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
