"""What tests need of a server: run one, put load on it, break what is around it, and prove what it promised.

Not the fixtures: those are in `bridgehead.pytest_plugin`, each a thin dress of something here. Nothing here
needs pytest.

    from bridgehead.testing import running

    with running("shop:app") as server:
        assert server.client.get("/").status_code == 200

`serve` imports none of this.
"""

from bridgehead.load import Report, load
from bridgehead.testing.canary import Canary
from bridgehead.testing.clients import (
    Answer,
    FaultyClient,
    half_closing_client,
    never_reading_client,
    resetting_client,
    slow_client,
)
from bridgehead.testing.faults import Faults, FaultyUpstream
from bridgehead.testing.in_process import ServerProcess
from bridgehead.testing.in_thread import ServerThread
from bridgehead.testing.ledger import Entry, Event, Folder, Ledger, read_ledger
from bridgehead.testing.ledgered import Ledgered
from bridgehead.testing.logs import Logs
from bridgehead.testing.promise import Breach, Outcome, Sent, Verdict, judge
from bridgehead.testing.serving import Served, running

__all__ = [
    "Answer",
    "Breach",
    "Canary",
    "Entry",
    "Event",
    "Faults",
    "FaultyClient",
    "FaultyUpstream",
    "Folder",
    "Ledger",
    "Ledgered",
    "Logs",
    "Outcome",
    "Report",
    "Sent",
    "Served",
    "ServerProcess",
    "ServerThread",
    "Verdict",
    "half_closing_client",
    "judge",
    "load",
    "never_reading_client",
    "read_ledger",
    "resetting_client",
    "running",
    "slow_client",
]
