"""Steps that held the loop for too long: whose they were, where they were, and how often.

Not who notices (`health.rs`): a thread of Rust's calls, once for each, while the step still runs if Python's
lock is to be had.

Invariant: a place is logged once, and no more places are kept than there is room for.
"""

import asyncio
import os
import site
import sys
import threading
from dataclasses import dataclass, replace
from types import FrameType

from bridgehead import log, whereabouts
from bridgehead.errors import OUR_FOLDER

_MOST = 100  # places: more are one mistake made everywhere
_LIBRARIES = (os.path.dirname(os.__file__), *site.getsitepackages())
_RUN_LOOPS = (os.path.join(OUR_FOLDER, "loops.py"), os.path.join("asyncio", "base_events.py"))
_POLL = (os.path.join(OUR_FOLDER, "selector.py"), os.path.join(os.path.dirname(os.__file__), "selectors.py"))
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


class SlowSteps:
    """Those of one loop. Made on its thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread = threading.get_ident()
        self._seen: dict[str, SlowStep] = {}
        self._last = SlowStep(place="", request="", cause="", count=0, longest=0.0)

    def tell(self, held: float, cause: str, seen: tuple[str, str] | None) -> tuple[str, str]:
        """A step has held the loop for so long, by this, here, and may go on. Gives place and request."""
        place, request = seen or (_UNKNOWN, "")
        self._last = SlowStep(place=place, request=request, cause=cause, count=1, longest=held)
        is_new = place not in self._seen
        if self._keep(self._last) and is_new:
            self._log(self._last)
        return place, request

    def over(self, held: float) -> None:
        """The step that was told of last is over, and held it for so long in all."""
        self._keep(replace(self._last, longest=held, count=0))

    def _keep(self, step: SlowStep) -> bool:
        """Whether there is room for it."""
        before = self._seen.get(step.place)
        if before is None:
            if len(self._seen) >= _MOST:
                return False
            before = replace(step, count=0)
        longest = step if step.longest >= before.longest else before
        self._seen[step.place] = SlowStep(
            place=step.place,
            request=longest.request or before.request,
            cause=step.cause,
            count=before.count + step.count,
            longest=longest.longest,
        )
        return True

    def slowest(self) -> tuple[SlowStep, ...]:
        """Each place once, the longest first."""
        return tuple(sorted(self._seen.values(), key=lambda each: -each.longest))

    def _log(self, step: SlowStep) -> None:
        words = f"The loop has been held for {step.longest:.2f} s so far by {step.place}"
        if step.request:
            words = f"{words}, in the request {step.request}"
        log.logger().warning("%s: %s. This is said once for each place.", words, step.cause)

    def place(self) -> tuple[str, str]:
        """Where the loop's thread is, and for whom. It stands still: this thread has Python's lock."""
        frame = sys._current_frames().get(self._thread)
        request = whereabouts.request_of(asyncio.current_task(self._loop))
        found = of_the_application(frame) or frame
        # One that polls is through with the step, and has not said so yet.
        is_over = found is None or found.f_code.co_filename.endswith((*_RUN_LOOPS, *_POLL))
        return (_UNKNOWN if found is None or is_over else whereabouts.frame_in_words(found)), request


def of_the_application(frame: FrameType | None) -> FrameType | None:
    """The innermost that is neither a library's nor ours; not who runs the loop."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.endswith(_RUN_LOOPS):
            return None
        if not file.startswith((*_LIBRARIES, OUR_FOLDER, "<frozen ")):
            return frame
        frame = frame.f_back
    return None
