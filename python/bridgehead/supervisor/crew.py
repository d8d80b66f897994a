"""Several workers, from the first one's start to the last one's end.

Not one worker's post (`post.py`), and not the sockets (`slots.py`).

Invariant: while it runs, each post has a worker, or one that comes, or a time at which one is started.
"""

import os
import selectors
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import NoReturn

from bridgehead import log
from bridgehead.caught import Caught
from bridgehead.config import Config
from bridgehead.errors import EXIT_START_FAILED
from bridgehead.patience import Patience
from bridgehead.supervisor.health import LOOK, Health
from bridgehead.supervisor.hired import Hired, Terms
from bridgehead.supervisor.post import Post
from bridgehead.supervisor.rolling import Rolling
from bridgehead.supervisor.slots import Slots

SIGNALS = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGCHLD),
    *(signal.SIGHUP, signal.SIGTTIN, signal.SIGTTOU),
)

MOST = 512  # workers; as many as `--workers` takes
_CHANGES = frozenset({signal.SIGHUP, signal.SIGTTIN, signal.SIGTTOU})
_TRIES = 3  # of one post, when no worker of any has ever been ready
_MARGIN = 1.0  # seconds beside what a worker takes for its own end
EXIT_NONE_CAME_UP = 1


class Crew:
    """So many workers on these slots."""

    def __init__(self, config: Config, environ: Mapping[str, str], slots: Slots) -> None:
        self._slots = slots
        self._terms = Terms(config, sys.path, environ, slots)
        patience = Patience.of(config, environ)
        self._delay = patience.delay
        self._grace = patience.longest + _MARGIN
        self._posts = [Post(slot, self._terms, self._grace) for slot in range(len(slots))]
        self._parting: list[Post] = []  # that nobody succeeds at
        self._rolling = Rolling()
        self._health = Health(config.timeout_worker_healthcheck)
        self._selector = selectors.DefaultSelector()
        self._told: signal.Signals | None = None  # by which the end began
        self._failure: int | None = None  # why it began, as an exit code
        self._deadline: float | None = None
        self._gates: float | None = None  # when they are shut
        self._served = False  # whether any worker was ever ready
        self._complete = False  # whether all of them were

    def run(self, caught: Caught) -> signal.Signals:
        """Until a signal comes; what is left of the workers is ended on the way out."""
        self._selector.register(caught, selectors.EVENT_READ, lambda: self._catch(caught))
        log.parent_started(os.getpid())
        try:
            while not self._is_over():
                self._start_who_is_due()
                for key, _ in self._selector.select(self._patience()):
                    key.data()
                self._judge()
        finally:
            self._kill()
            self._selector.close()
            self._terms.close()
        log.parent_finished(os.getpid())
        if self._told is None:
            raise SystemExit(self._failure)
        return self._told

    def _is_over(self) -> bool:
        return self._ends and not any(True for post in self._every for _ in post)

    @property
    def _every(self) -> list[Post]:
        return [*self._posts, *self._parting]

    @property
    def _ends(self) -> bool:
        return self._deadline is not None

    def _patience(self) -> float:
        times = [LOOK, *(post.patience for post in self._posts)]
        times += [child.patience for post in self._every for child in post]
        now = time.monotonic()
        times += [max(0.0, each - now) for each in (self._deadline, self._gates) if each is not None]
        return min(each for each in times if each is not None)

    def _start_who_is_due(self) -> None:
        for post in self._posts:
            if post.patience == 0.0:
                child = post.hire()
                self._selector.register(child, selectors.EVENT_READ, partial(self._hear, post, child))

    def _hear(self, post: Post, child: Hired) -> None:
        """A worker has said something, or hung up."""
        if not child.hear():
            self._ignore(child)
        if not self._ends and post not in self._parting:
            post.hear(child)
            if child.served and not self._served:
                self._served = True
                log.serving(self._slots.labels)

    def _announce_all(self) -> None:
        if not self._complete and all(post.serving is not None for post in self._posts):
            self._complete = True
            log.workers_ready(len(self._posts))

    def _ignore(self, child: Hired) -> None:
        with suppress(KeyError):  # it has hung up, and is ignored already
            self._selector.unregister(child)

    def _catch(self, caught: Caught) -> None:
        for number in caught.take():
            if number is signal.SIGCHLD:
                continue  # `_judge` looks
            if number in _CHANGES:
                self._change(number)
            elif self._ends or number is signal.SIGQUIT:
                self._die_by(number)
            else:
                self._told = number
                self._end()

    def _change(self, number: signal.Signals) -> None:
        """What a signal asks for that ends nothing; one that is ending does no more of it."""
        if self._ends:
            return
        if number is signal.SIGHUP:
            self._rolling.begin(self._posts)
            return
        if number is signal.SIGTTIN and len(self._posts) < MOST:
            self._posts.append(Post(self._lowest_number(), self._terms, self._grace))
        elif number is signal.SIGTTOU and len(self._posts) > 1:
            post = self._posts.pop()
            post.part()
            self._rolling.forget(post)
            self._parting.append(post)
        self._complete = False
        log.workers_wanted(len(self._posts))

    def _lowest_number(self) -> int:
        taken = {post.slot for post in self._posts}
        return min(set(range(len(taken) + 1)) - taken)

    def _end(self) -> None:
        """Everybody is to leave, within one time for all."""
        now = time.monotonic()
        self._deadline, self._gates = now + self._grace, now + self._delay
        log.stopping()
        self._shut_gates()
        for post in self._every:
            post.stop()

    def _shut_gates(self) -> None:
        """Those who come during a drain delay are let in, and later ones are refused."""
        if self._gates is not None and self._gates <= time.monotonic():
            self._gates = None
            self._slots.shut_gates()

    def _judge(self) -> None:
        """See what has become of the workers, and of time."""
        self._shut_gates()
        late = self._deadline is not None and self._deadline <= time.monotonic()
        for post in self._every:
            for child in post:
                if late or child.patience == 0.0:
                    log.logger().warning("Worker [%d] did not end in time: killed.", child.pid)
                    child.kill()
                if child.has_ended():
                    self._bury(post, child)
        self._parting = [post for post in self._parting if any(True for _ in post)]
        if not self._ends:
            for post in self._health.look(self._posts):
                self._rolling.add(post)
            self._rolling.step()
            self._announce_all()

    def _bury(self, post: Post, child: Hired) -> None:
        self._ignore(child)
        child.close()
        refused = child.refused_to_start
        unmissed = self._ends or post in self._parting
        post.ended(child, silently=unmissed or (refused and not self._served))
        if self._ends or self._served:
            return
        if refused:
            self._failure = EXIT_START_FAILED  # it has said why
        elif post.failures >= _TRIES:
            log.logger().error("No worker has come up in %d tries: giving up.", _TRIES)
            self._failure = EXIT_NONE_CAME_UP
        if self._failure is not None:
            self._deadline = time.monotonic()
            self._kill()

    def _kill(self) -> None:
        for post in self._every:
            for child in post:
                child.kill()

    def _die_by(self, number: signal.Signals) -> NoReturn:
        """A second signal: now, as a worker does."""
        self._kill()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        raise SystemExit(128 + number)
