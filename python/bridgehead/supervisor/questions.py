"""What may be asked of a running server: its state, a reload, more workers, fewer, an end.

Not how a question comes (`desk.py`). Each does what a signal does, or what the crew does by itself.

Invariant: an answer is given at once; what was asked for may take its time.
"""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from bridgehead import levels, log
from bridgehead.errors import StartError
from bridgehead.lifetime import resident
from bridgehead.supervisor.desk import Refused
from bridgehead.supervisor.hired import MOST, Hired

if TYPE_CHECKING:
    from bridgehead.supervisor.crew import Crew

Question = Mapping[str, Any]


class Questions:
    """Of one crew."""

    def __init__(self, crew: "Crew") -> None:
        self._crew = crew
        self._known: dict[str, Callable[[Question], Mapping[str, Any]]] = {
            "status": self._status,
            "reload": self._reload,
            "scale": self._scale,
            "stop": self._stop,
            "drain": self._drain,
            "log-level": self._set_level,
            "stacks": self._show,
        }

    def answer(self, question: Question) -> Mapping[str, Any]:
        """`Refused` says why not."""
        act = self._known.get(str(question.get("do")))
        if act is None:
            raise Refused(f"{question.get('do')!r} is not one of {', '.join(self._known)}")
        return act(question)

    def _status(self, _: Question) -> Mapping[str, Any]:
        crew = self._crew
        workers = [_described(child, post.slot) for post in crew.every for child in post]
        return {
            "pid": os.getpid(),
            "state": crew.state,
            "reload": crew.reloaded,
            "wanted": crew.wanted,
            "addresses": crew.labels,
            "workers": workers,
        }

    def _reload(self, _: Question) -> Mapping[str, Any]:
        self._unless_ending()
        self._look_at_certificates()
        self._crew.reload()
        return {}

    def _look_at_certificates(self) -> None:
        """Those that no worker could begin with are said to who asks, and no worker is started for them."""
        config = self._crew.config
        if not config.is_ssl:
            return
        from bridgehead.certificates import credentials  # in the clear nobody needs it

        try:
            credentials(config)
        except StartError as problem:
            log.certificates_refused(problem)
            raise Refused(f"the certificates are used as they were read before: {problem.message}") from None

    def _scale(self, question: Question) -> Mapping[str, Any]:
        self._unless_ending()
        wanted = question.get("workers")
        # `true` is an `int` to Python.
        if not isinstance(wanted, int) or isinstance(wanted, bool) or not 1 <= wanted <= MOST:
            raise Refused(f"{wanted!r} is not a number of workers from 1 to {MOST}")
        self._crew.scale(wanted)
        return {}

    def _stop(self, _: Question) -> Mapping[str, Any]:
        self._unless_ending()
        self._crew.stop()
        return {}

    def _drain(self, question: Question) -> Mapping[str, Any]:
        self._unless_ending()
        self._crew.replace(self._worker(question))
        return {}

    def _set_level(self, question: Question) -> Mapping[str, Any]:
        try:
            level = levels.number_of(levels.read(question.get("level")))
        except StartError as problem:
            raise Refused(problem.message) from None
        log.logger().setLevel(level)
        for post in self._crew.every:
            for child in post:
                child.set_level(level)
        return {}

    def _show(self, question: Question) -> Mapping[str, Any]:
        self._worker(question).show()
        return {"where": "stderr"}

    def _unless_ending(self) -> None:
        if self._crew.state == "stopping":
            raise Refused("the server is stopping")

    def _worker(self, question: Question) -> Hired:
        for post in self._crew.every:
            for child in post:
                if child.pid == question.get("worker"):
                    return child
        raise Refused(f"there is no worker {question.get('worker')!r}")


def _described(child: Hired, slot: int) -> Mapping[str, Any]:
    served = child.served_for
    return {
        "pid": child.pid,
        "slot": slot,
        "state": child.state.name.lower(),
        "requests": child.requests,
        "seconds": None if served is None else round(served, 1),
        "memory": resident(child.pid),
    }
