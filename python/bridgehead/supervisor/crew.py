"""Several workers, from the first one's start to the last one's end.

Not one worker's post (`post.py`), and not the sockets (`slots.py`).

Invariant: while it runs, each post has a worker, or one that comes, or a time at which one is started.
"""

import os
import selectors
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn, Protocol

from bridgehead import log
from bridgehead.config import Config
from bridgehead.errors import EXIT_START_FAILED, EXIT_STOP_FAILED
from bridgehead.notices import Notices
from bridgehead.patience import Patience
from bridgehead.reopening import reopen
from bridgehead.sockets import Bound
from bridgehead.supervisor.backoff import Prospects
from bridgehead.supervisor.desk import Desk
from bridgehead.supervisor.health import LOOK, Health
from bridgehead.supervisor.hired import MOST, Hired, Start, Terms
from bridgehead.supervisor.orphans import reap
from bridgehead.supervisor.post import Post
from bridgehead.supervisor.questions import Questions
from bridgehead.supervisor.recycling import Recycling
from bridgehead.supervisor.rolling import Rolling

SIGNALS = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGCHLD),
    *(signal.SIGHUP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGUSR1, signal.SIGUSR2),
)

_CHANGES = frozenset({signal.SIGHUP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGUSR2})
_MARGIN = 1.0  # seconds beside what a worker takes for its own end
EXIT_NONE_CAME_UP = 1


class Orders(Protocol):
    """What a crew is told by signals, of its own process or of somebody who passes them on."""

    def fileno(self) -> int:
        """Readable when there is something to take."""
        ...

    def take(self) -> list[signal.Signals]:
        """What came since it was last taken."""
        ...


class Crew:
    """As many workers as there are slots. `first` is called once one of them is ready; else it is said.

    `may_leave` is asked whether another program may go on with them, when SIGUSR2 wants that.
    """

    def __init__(
        self,
        terms: Terms,
        first: Callable[[], object] | None = None,
        may_leave: Callable[[], bool] = bool,
        *,
        why: Start = "initial",
    ) -> None:
        config = terms.config
        self._slots = terms.slots
        self._terms = terms
        self._first = first
        self._may_leave = may_leave
        self._notices = Notices(terms.home.environ)
        patience = Patience.of(config, terms.home.environ)
        self._delay = patience.delay
        self._grace = patience.longest + _MARGIN
        self._posts = [Post(slot, self._terms, self._grace, why) for slot in range(len(terms.slots))]
        self._parting: list[Post] = []  # that nobody succeeds at
        self._rolling = Rolling()
        self._health = Health(config.timeout_worker_healthcheck)
        self._recycling = Recycling()
        self._selector = selectors.DefaultSelector()
        self._desk: Desk | None = None
        self._told: signal.Signals | None = None  # by which the end began
        self._failure: int | None = None  # why it began, as an exit code
        self._deadline: float | None = None
        self._is_late = False  # whether that is over
        self._gates: float | None = None  # when they are shut
        self._served = False  # whether any worker was ever ready
        self._prospects = Prospects()
        self._complete = first is not None  # whether all of them were, or nobody wants to know
        self._left = False  # whether somebody else goes on with them

    def take_over(self, written: Mapping[str, Any]) -> None:
        """Go on with these workers, as `written` wrote them."""
        self._posts = []
        for each in written["posts"]:
            post = Post(each["slot"], self._terms, self._grace, "died")
            post.take_over(each)
            self._posts.append(post)
            for child in post:
                self._listen(post, child)
        self._served = self._complete = True
        self._prospects = Prospects(steady=True)
        if written["reloads"]:
            self._rolling.go_on(self._posts[0])

    def written(self) -> dict[str, Any]:
        """Its posts, for another program in this same process; once it has run until it was left."""
        posts = [post.written() for post in self._posts]
        for post in self._parting:
            posts[0]["leaving"] += [child.written() for child in post]
        return {"posts": posts, "reloads": self._rolling.is_underway}

    def leave(self) -> None:
        """Have `run` end, and the workers go on; it looks when it is told something."""
        self._left = True

    def run(self, orders: Orders) -> signal.Signals | None:
        """Until a signal comes; workers that are left then are ended on the way out. None: it was left."""
        self._selector.register(orders, selectors.EVENT_READ, lambda: self._catch(orders))
        try:
            while not self._is_over() and not self._left:
                self._start_who_is_due()
                for key, _ in self._selector.select(self._patience()):
                    key.data()
                self._judge()
        finally:
            if self._desk is not None:
                self._desk.close()
            self._selector.close()
            if not self._left:
                self._kill()
                self._terms.close()
        if self._failure is not None:
            raise SystemExit(self._failure)
        return self._told

    def open_desk(self, bound: Bound) -> None:
        """Answer who asks on this socket."""
        self._desk = Desk(bound, self._selector, Questions(self).answer)

    @property
    def config(self) -> Config:
        """What its workers are started with."""
        return self._terms.config

    @property
    def state(self) -> str:
        """In a word."""
        if self._ends:
            return "stopping"
        return "reloading" if self._rolling.is_underway else "serving" if self._served else "starting"

    @property
    def reloaded(self) -> str | None:
        """What the last reload came to, in a word; None before there was one."""
        return self._rolling.outcome

    @property
    def wanted(self) -> int:
        """How many workers there are to be."""
        return len(self._posts)

    @property
    def labels(self) -> list[str]:
        """Where clients find us."""
        return self._slots.labels

    def _is_over(self) -> bool:
        return self._ends and not any(True for post in self.every for _ in post)

    @property
    def every(self) -> list[Post]:
        """All posts, also those that nobody succeeds at."""
        return [*self._posts, *self._parting]

    @property
    def _ends(self) -> bool:
        return self._deadline is not None

    def _patience(self) -> float:
        times = [LOOK, self._notices.patience, *(post.patience for post in self._posts)]
        times += [child.patience for post in self.every for child in post]
        now = time.monotonic()
        ends = None if self._is_late else self._deadline
        times += [max(0.0, each - now) for each in (ends, self._gates) if each is not None]
        return min(each for each in times if each is not None)

    def _start_who_is_due(self) -> None:
        for post in self._posts:
            if post.patience == 0.0:
                child = post.hire()
                if child is not None:
                    self._listen(post, child)
                else:
                    self._see_prospects(post)

    def _listen(self, post: Post, child: Hired) -> None:
        self._selector.register(child, selectors.EVENT_READ, partial(self._hear, post, child))

    def _hear(self, post: Post, child: Hired) -> None:
        """A worker has said something, or hung up."""
        if not child.hear():
            self._ignore(child)
        if not self._ends and post not in self._parting:
            post.hear(child)
            if child.served and not self._served:
                self._served = True
                self._notices.ready()
                (self._first or self._announce)()

    def _announce(self) -> None:
        log.serving(self._slots.labels, self.config.calls_itself)

    def _announce_all(self) -> None:
        if not self._complete and all(post.serving is not None for post in self._posts):
            self._complete = True
            log.workers_ready(len(self._posts))

    def _ignore(self, child: Hired) -> None:
        with suppress(KeyError):  # it has hung up, and is ignored already
            self._selector.unregister(child)

    def _catch(self, orders: Orders) -> None:
        for number in orders.take():
            if number is signal.SIGCHLD:
                continue  # `_judge` looks
            if number is signal.SIGUSR1:
                self._reopen()
            elif number in _CHANGES:
                self._change(number)
            elif self._ends or number is signal.SIGQUIT:
                self._die_by(number)
            else:
                self.stop(number)

    def stop(self, told: signal.Signals = signal.SIGTERM) -> None:
        """End in order."""
        self._told = told
        self._end()

    def _reopen(self) -> None:
        reopen()
        for post in self.every:
            for child in post:
                child.reopen()

    def _change(self, number: signal.Signals) -> None:
        """What a signal asks for that ends nothing; one that is ending does no more of it."""
        if self._ends:
            return
        if number is signal.SIGHUP and self._terms.terminal.is_lost:
            self.stop()
        elif number is signal.SIGHUP:
            self.reload()
        elif number is signal.SIGUSR2:
            self._left = self._may_leave()
        else:
            more = 1 if number is signal.SIGTTIN else -1
            self.scale(min(max(len(self._posts) + more, 1), MOST))

    def reload(self) -> None:
        """Replace each worker."""
        self._rolling.begin(self._posts)
        self._notices.reloading()

    def replace(self, child: Hired) -> None:
        """This one worker, if it is one that serves."""
        for post in self._posts:
            if post.serving is child:
                self._rolling.add(post, "replaced")

    def scale(self, wanted: int) -> None:
        """Have so many workers."""
        while len(self._posts) < wanted:
            self._posts.append(Post(self._lowest_number(), self._terms, self._grace, "added"))
        while len(self._posts) > wanted:
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
        # As soon as operators ask: a worker whose loop is held hears of it later.
        self._terms.figures.sheets.last_call()
        log.stopping()
        self._notices.stopping()
        self._shut_gates()
        for post in self.every:
            post.stop()

    def _shut_gates(self) -> None:
        """Those who come during a drain delay are let in, and later ones are refused."""
        if self._gates is not None and self._gates <= time.monotonic():
            self._gates = None
            self._slots.shut_gates()

    def _judge(self) -> None:
        """See what has become of the workers, and of time."""
        self._notices.alive()
        self._shut_gates()
        self._is_late = self._deadline is not None and self._deadline <= time.monotonic()
        for post in self.every:
            for child in post:
                gone = child.has_ended()
                if not gone and (self._is_late or child.patience == 0.0):
                    gone = self._end_by_force(child)
                if gone:
                    self._bury(post, child)
        self._parting = [post for post in self._parting if any(True for _ in post)]
        if self._first is None:  # else there are others here who wait for their own
            reap({child.pid for post in self.every for child in post})
        if not self._ends:
            for post in self._health.look(self._posts):
                self._rolling.add(post, "unresponsive")
            for post in self._recycling.look(self._posts):
                self._rolling.add(post, "recycled")
            if self._rolling.step():
                self._notices.ready()
            self._announce_all()

    def _end_by_force(self, child: Hired) -> bool:
        """Whether it has ended."""
        if child.must_wait(each for post in self.every for each in post):
            return False
        if not child.is_being_ended:
            log.logger().warning("Worker [%d] %s: %s", child.pid, child.delay, child.verdict)
            if self._ends:  # else it was replaced, and is no part of the stop
                self._failure = EXIT_STOP_FAILED
        child.end_by_force()
        return child.has_ended()

    def _bury(self, post: Post, child: Hired) -> None:
        self._ignore(child)
        child.close()
        refused = child.refused_to_start
        self._prospects.saw(child.served_for)
        unmissed = self._ends or post in self._parting
        post.ended(child, silently=unmissed or (refused and not self._served))
        if self._ends and child.failed_to_stop:
            self._failure = EXIT_STOP_FAILED  # it has said so
        if self._ends:
            return
        if refused and not self._served:
            self._give_up(EXIT_START_FAILED)  # it has said why
        else:
            if refused:
                self._terms.floor.give()
            self._see_prospects(post)

    def _see_prospects(self, post: Post) -> None:
        """One more has died at this post."""
        serving = any(each.serving is not None for each in self._posts)
        if self._prospects.are_gone(post.failures, serving=serving):
            how = "stayed" if self._served else "come"
            log.logger().error("No worker has %s up in %d tries: giving up.", how, post.failures)
            self._give_up(EXIT_NONE_CAME_UP)

    def _give_up(self, code: int) -> None:
        self._failure = code
        self._deadline = time.monotonic()
        self._kill()

    def _kill(self) -> None:
        for post in self.every:
            for child in post:
                child.kill()

    def _die_by(self, number: signal.Signals) -> NoReturn:
        """A second signal: now, as a worker does."""
        self._kill()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        raise SystemExit(128 + number)
