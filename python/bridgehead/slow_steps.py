"""Steps that held the loop for too long: whose they were, where they were, and how often.

Not who notices (`health.rs`): a thread of Rust's calls, once for each, while the step still runs if Python's
lock is to be had.

Invariant: a place is logged at its first, tenth, hundredth time and so on, and no more places
are kept than there is room for.
"""

import asyncio
import os
import site
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

from bridgehead import awaiters, log, theirs, whereabouts
from bridgehead.errors import OUR_FOLDER

_MOST = 100  # places: more are one mistake made everywhere
_LIBRARIES = (os.path.dirname(os.__file__), *site.getsitepackages(), OUR_FOLDER)
_FOREIGN = (*_LIBRARIES, "<frozen ", "<string>")
_OUR_LOOPS = os.path.join(OUR_FOLDER, "loops.py")
_RUN_LOOPS = (_OUR_LOOPS, os.path.join("asyncio", "base_events.py"))
_CALLS = os.path.join("asyncio", "events.py")  # what it called is over
_POLL = (os.path.join(OUR_FOLDER, "selector.py"), os.path.join(os.path.dirname(os.__file__), "selectors.py"))
_AFTERWARDS = (__file__, awaiters.__file__, whereabouts.__file__, os.path.join(OUR_FOLDER, "route.py"))
_THROUGH = (*_RUN_LOOPS, *_POLL, *_AFTERWARDS, _CALLS)
# A loop that is not written in Python does not show what it calls.
_NAMELESS = "a callback that is no Python code"
_UNKNOWN = "something that was over before it could be looked at"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowStep:
    """A place that held the loop: `longest`, in seconds, for `request`. `cause` is the last one.

    A step that still runs is as long as it was when it was noticed.
    """

    place: str
    request: str
    cause: str
    count: int
    longest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Whose a file is, by how its path begins or ends: for who reads frames without Python; read by Rust."""

    libraries: tuple[str, ...]
    theirs: tuple[str, ...]
    loops: tuple[str, ...]
    through: tuple[str, ...]


def files() -> Files:
    """As `of_the_application` has it."""
    return Files(libraries=_FOREIGN, theirs=theirs.places(), loops=_RUN_LOOPS, through=_THROUGH)


class SlowSteps:
    """Those of one loop. Made on its thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, among_others: bool) -> None:
        """`among_others`: other workers have the same places, so it is said whose steps they are."""
        self._loop = loop
        self._whose = f"The loop of worker [{os.getpid()}]" if among_others else "The loop"
        self._thread = threading.get_ident()
        self._seen: dict[str, SlowStep] = {}
        self.during = ""  # what the application does before the first request, and after the last
        # What was seen last, and by what names its request goes.
        self._named: tuple[tuple[str, str], log.Names | None] = (("", ""), None)

    def tell(
        self,
        held: float,
        cause: str,
        seen: tuple[str, str] | None,
        later: bool = False,
        read: str | None = None,
    ) -> tuple[str, str]:
        """A step has held the loop for so long, by this, here, and may go on. Gives place and request.

        `later`: it may have gone on when its place was seen. `read`: the place, as it was read by who had not
        got Python's lock.
        """
        place, request = seen or ("", "")
        if read is not None:
            place, later = read, False
        if later and place == _NAMELESS:
            place = ""  # the loop called something that was over, and nothing any more
        place = place or _UNKNOWN
        step = SlowStep(place=place, request=request, cause=cause, count=1, longest=held)
        if self._keep(step) and _is_told(count := self._seen[place].count):
            seen_last, names = self._named
            self._log(step, count, names if seen == seen_last else None, later=later)
        return place, request

    def over(self, held: float, cause: str, told: tuple[str, str]) -> None:
        """The step that was told of so is over, and held it for so long in all."""
        place, request = told
        self._keep(SlowStep(place=place, request=request, cause=cause, count=0, longest=held))

    def _keep(self, step: SlowStep) -> bool:
        """Whether there is room for it."""
        before = self._seen.get(step.place)
        if before is None:
            if len(self._seen) >= _MOST:
                return False
            before = replace(step, count=0)
        self._seen[step.place] = _joined(before, step)
        return True

    def slowest(self, just_over: tuple[float, str, tuple[str, str]] | None = None) -> tuple[SlowStep, ...]:
        """Each place once, the longest first. `just_over`: what `over` is told next."""
        seen = dict(self._seen)
        if just_over is not None:
            held, cause, (place, request) = just_over
            if place in seen:
                step = SlowStep(place=place, request=request, cause=cause, count=0, longest=held)
                seen[place] = _joined(seen[place], step)
        return tuple(sorted(seen.values(), key=lambda each: -each.longest))

    def _log(self, step: SlowStep, count: int, names: log.Names | None, *, later: bool) -> None:
        words = f"{self._whose} has been held for {step.longest:.2f} s so far by {step.place}"
        if later and not step.place.endswith(("around it", _UNKNOWN)):
            words = f"{words} or just before it"
        if step.request:
            words = f"{words}, in the request {step.request}"
        elif self.during:
            words = f"{words}, in the application's {self.during}"
        if names is not None:
            words = f"{words}, whose id is {names[0]}"
        log.held(words, step.cause, count, names)

    def whose(self, request: "dict[str, Any] | asyncio.Task[Any] | None") -> tuple[str, str]:
        """Handler and request of a step that is over: by its scope or its task, or the current task's."""
        if not isinstance(request, dict):
            request = awaiters.scope_behind(request or asyncio.current_task(self._loop))
        handler = whereabouts.handler_in(request)
        return self._seen_for(f"{handler}, or what is around it" if handler else "", request)

    def place(self) -> tuple[str, str]:
        """Where the loop's thread is, and for whom. It stands still: this thread has Python's lock."""
        frame = sys._current_frames().get(self._thread)
        task = asyncio.current_task(self._loop)
        request = awaiters.scope_behind(task) or whereabouts.scope_around(frame)
        if inner := of_the_application(frame, whereabouts.handlers_file(request)):
            return self._seen_for(whereabouts.frame_in_words(inner), request)
        if frame is not None and (callback := whereabouts.callback_in(frame)):
            return self._seen_for(callback, request)
        # One that polls, or says whose the step was, is through with it.
        if frame is None or frame.f_code.co_filename.endswith(_THROUGH):
            seen = self.whose(task)
            is_called = frame is not None and frame.f_code.co_filename == _OUR_LOOPS and task is None
            return self._seen_for(_NAMELESS, request) if is_called and seen == ("", "") else seen
        handler = whereabouts.handler_in(request)
        # A library's, before the handler or behind it: then it may have been the handler all the same.
        around = f", around {handler}" if handler else ""
        return self._seen_for(f"{whereabouts.frame_in_words(frame)}{around}", request)

    def _seen_for(self, place: str, scope: Mapping[str, Any]) -> tuple[str, str]:
        seen = place, whereabouts.asked_in(scope)
        self._named = seen, whereabouts.names_in(scope)
        return seen


def _joined(before: SlowStep, step: SlowStep) -> SlowStep:
    """Of one place, `step` being the later."""
    longest = step if step.longest >= before.longest else before
    return replace(longest, cause=step.cause, count=before.count + step.count)


def _is_told(count: int) -> bool:
    """At 1, 10, 100 and so on: a place that is met again and again says how often that is."""
    return str(count).strip("0") == "1"


def of_the_application(frame: FrameType | None, handlers: str = "") -> FrameType | None:
    """The innermost that is neither a library's nor ours, or is in this file; not who runs the loop."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.endswith(_RUN_LOOPS):
            return None
        foreign = file.startswith(_FOREIGN)
        if not foreign or file == handlers or theirs.has(file):
            return frame
        frame = frame.f_back
    return None
