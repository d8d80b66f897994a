"""A run while it lasts: begun, looked at, stopped, reported.

Not what is shown meanwhile: `command.py` does that.

Invariant: the GIL is free while a run is waited for, and leaving a run ends it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self, Unpack

from bridgehead._native import LoadRun
from bridgehead.errors import StartError
from bridgehead.load.keywords import LoadKeywords
from bridgehead.load.options import LoadOptions
from bridgehead.load.plan import Plan, Scenario, asked, plan_of
from bridgehead.load.report import Progress, Report

# How soon an interrupt is seen.
_SLICE = 0.1
# What a report repeats of its plan.
_SETTINGS = (
    "protocol",
    "streams",
    "connections",
    "threads",
    "rate",
    "duration",
    "requests",
    "warmup",
    "timeout",
    "keep_alive",
    "seed",
)


def load(
    url: str = "",
    *,
    scenarios: str | Sequence[Scenario] | None = None,
    **options: Unpack[LoadKeywords],
) -> Report:
    """Put load on a server, wait for the end, and say what came back.

    The options are those of `bridgehead load`, by their names in `LoadOptions`; `scenarios` is a file or a
    list. An interrupt (Ctrl-C) ends the run and is raised.
    """
    own = () if scenarios is None or isinstance(scenarios, str) else tuple(scenarios)
    file = scenarios if isinstance(scenarios, str) else None
    # `LoadOptions` reads what has a unit, and lists.
    written: dict[str, Any] = {**options}
    with Running(plan_of(LoadOptions(url=url, scenarios=file, **written), own)) as run:
        return run.report()


class Running:
    """A run that has begun; as a context manager it is ended when it is left."""

    def __init__(self, plan: Plan) -> None:
        """Connect once, and begin. A server that is not there is a `StartError`."""
        self.plan = plan
        self._started = datetime.now(UTC)
        self._report: Report | None = None
        try:
            self._run = LoadRun(plan)
        except ConnectionError as problem:
            raise StartError(str(problem), "start the server first, or correct the URL") from None
        except ValueError as problem:
            raise StartError(str(problem)) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self.report()

    def wait(self, seconds: float) -> bool:
        """Wait for the end, so long at most; say whether it has come."""
        return self._run.wait(seconds)

    def stop(self) -> None:
        """End it now; what was asked and is not answered is given up."""
        self._run.stop()

    def progress(self) -> Progress:
        """How far it is. Not to be asked after `report`."""
        return Progress.from_native(self._run.progress())

    def report(self) -> Report:
        """Wait for the end, and say what it came to."""
        if self._report is None:
            while not self.wait(_SLICE):
                pass
            self._report = self._made(self._run.report())
        return self._report

    def _made(self, values: Mapping[str, Any]) -> Report:
        plan = asdict(self.plan)
        settings = {name: plan[name] for name in _SETTINGS}
        settings["asked"] = [asked(each) for each in self.plan.scenarios]
        started = self._started.isoformat(timespec="seconds")
        known = {"target": self.plan.target, "started": started, "settings": settings}
        return Report.from_json({**values, **known})
