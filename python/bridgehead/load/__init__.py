"""Load on an HTTP server, and a report of what came back: `bridgehead load`, and the same from Python.

Not a server and not a test framework: `load` blocks until the run is over, and judges nothing.

    from bridgehead.load import load

    report = load("http://127.0.0.1:8000/", connections=16, duration="5s")
    print(report.rps, report.p99, report.errors)
"""

from bridgehead.load.options import LoadOptions
from bridgehead.load.plan import Plan, Scenario, Upload, plan_of
from bridgehead.load.report import Latency, Portion, Progress, Report, Row
from bridgehead.load.running import Running, load

__all__ = [
    "Latency",
    "LoadOptions",
    "Plan",
    "Portion",
    "Progress",
    "Report",
    "Row",
    "Running",
    "Scenario",
    "Upload",
    "load",
    "plan_of",
]
