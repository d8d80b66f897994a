"""One burst on one server, and what it cost.

Not the order of bursts (`compare.py`), and not the load itself (`clients.py`).

Invariant: what answered wrongly has no figure.
"""

from clients import burst, probe
from results import Burst, Measured
from servers import HYPER, NGINX, Server
from workloads import Workload

from bridgehead.errors import StartError


def ask(server: Server, workload: Workload, core: int, seconds: int, found: Measured) -> Burst | None:
    """One burst, and what it cost; what is wrong is noted, and ends the measurement of this server."""
    path = path_of(server.name, workload)
    assert path is not None
    try:
        found.wrong = probe(server.port, path, workload, core)
        if found.wrong:
            return None
        before = server.cpu()
        came = burst(server.port, path, workload, core, seconds)
    except (RuntimeError, OSError, StartError) as problem:
        found.wrong = in_a_line(problem)
        return None
    spent = server.cpu() - before
    found.wrong = came.wrong or ("" if came.answers else "no answer")
    if found.wrong:
        return None
    found.memory = server.memory()
    return Burst(cpu=spent / came.answers / 1000, rate=came.rate, p50=came.p50, p99=came.p99)


def in_a_line(problem: Exception) -> str:
    """Why a server has no figure, for a cell of a table."""
    return " ".join(str(problem).replace("|", "/").split())


def path_of(name: str, workload: Workload) -> str | None:
    """What this server is asked for; None: it is not asked."""
    return {HYPER: workload.limit, NGINX: workload.nginx}.get(name, workload.path)
