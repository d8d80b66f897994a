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
from dataclasses import dataclass
from types import FrameType

from bridgehead import log, whereabouts
from bridgehead.errors import OUR_FOLDER

_MOST = 100  # places: more are one mistake made everywhere
_LIBRARIES = (os.path.dirname(os.__file__), *site.getsitepackages())
_RUN_LOOPS = (os.path.join(OUR_FOLDER, "loops.py"), os.path.join("asyncio", "base_events.py"))
_UNKNOWN = "something that was over before it could be looked at"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowStep:
    """A place that held the loop. `longest` is in seconds, as far as it was seen; `cause` the last one."""

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

    def tell(self, held: float, cause: str, runs: bool) -> tuple[str, str]:
        """A step has held the loop for so long, by this, and may go on. Gives its place and its request."""
        place, request = self._look() if runs else (_UNKNOWN, "")
        before = self._seen.get(place)
        if before is None and len(self._seen) >= _MOST:
            return place, request
        self._seen[place] = SlowStep(
            place=place,
            request=request or (before.request if before is not None else ""),
            cause=cause,
            count=1 if before is None else before.count + 1,
            longest=held if before is None else max(held, before.longest),
        )
        if before is None:
            self._log(self._seen[place])
        return place, request

    def slowest(self) -> tuple[SlowStep, ...]:
        """Each place once, the longest first."""
        return tuple(sorted(self._seen.values(), key=lambda each: -each.longest))

    def _log(self, step: SlowStep) -> None:
        words = f"The loop has been held for {step.longest:.2f} s by {step.place}"
        if step.request:
            words = f"{words}, in the request {step.request}"
        log.logger().warning("%s: %s. This is said once for each place.", words, step.cause)

    def _look(self) -> tuple[str, str]:
        """Where the loop's thread is, and for whom. It stands still: this thread has Python's lock."""
        frame = sys._current_frames().get(self._thread)
        request = whereabouts.request_of(asyncio.current_task(self._loop))
        found = of_the_application(frame) or frame
        return (_UNKNOWN if found is None else whereabouts.frame_in_words(found)), request


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
