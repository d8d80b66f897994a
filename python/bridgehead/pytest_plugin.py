"""Fixtures for tests of services: servers, load, faults. pytest finds them by an entry point (`pytest11`).

Not what they do: `bridgehead.testing` does that, without pytest. It is imported when a fixture is asked for,
so a test run that needs none of this pays for none.

Invariant: what a fixture has started is ended with its test, and what did not end well fails it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, Unpack, cast, overload

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from bridgehead.load import Report, Scenario
    from bridgehead.load.keywords import LoadKeywords
    from bridgehead.testing import Canary, FaultyClient, FaultyUpstream, Folder, Served
    from bridgehead.testing.canary import CanaryKeywords
    from bridgehead.testing.clients import ClientKeywords, Target
    from bridgehead.testing.faults import FaultKeywords
    from bridgehead.testing.in_process import ServerProcess
    from bridgehead.testing.serving import Where

# A test wants to know soon; who measures says how long.
_DURATION = "2s"
# Characters of a log.
_SHOWN = 8000
C = TypeVar("C", bound="FaultyClient")


class ServeApp(Protocol):
    """The type of the fixture `serve_app`."""

    @overload
    def __call__(
        self, app: str, *, where: Literal["process"] | None = None, **options: Any
    ) -> "ServerProcess": ...

    @overload
    def __call__(self, app: Any, *, where: "Where | None" = None, **options: Any) -> "Served": ...

    def __call__(self, app: Any, *, where: "Where | None" = None, **options: Any) -> "Served":
        """Start a server. One that is named in words has a process of its own, with what only that has."""


class Load(Protocol):
    """The type of the fixture `load`."""

    def __call__(
        self,
        target: "Target",
        path: str = "",
        *,
        scenarios: "str | Sequence[Scenario] | None" = None,
        **options: "Unpack[LoadKeywords]",
    ) -> "Report":
        """Put load on a server."""


class MakeUpstream(Protocol):
    """The type of the fixture `faulty_upstream`."""

    def __call__(self, **faults: "Unpack[FaultKeywords]") -> "FaultyUpstream":
        """Start an upstream."""


class MakeCanary(Protocol):
    """The type of the fixture `canary`."""

    def __call__(
        self, target: "Target", paths: "str | Iterable[str]" = "/", **options: "Unpack[CanaryKeywords]"
    ) -> "Canary":
        """Begin to ask."""


class MakeClient(Protocol):
    """The type of the fixtures `slow_client`, `resetting_client` and their like."""

    def __call__(
        self, target: "Target", path: str = "/", **request: "Unpack[ClientKeywords]"
    ) -> "FaultyClient":
        """Connect, and send a request."""


@pytest.fixture
def serve_app() -> Iterator[ServeApp]:
    """Start servers: `server = serve_app("shop:app")`; they are ended with the test, and have to end well."""
    from bridgehead.testing.serving import running

    servers: list[Served] = []

    def start(app: Any, *, where: "Where | None" = None, **options: Any) -> "Served":
        servers.append(held.enter_context(running(app, where=where, **options)))
        return servers[-1]

    try:
        with ExitStack() as held:
            yield cast(ServeApp, start)
    finally:
        # pytest keeps it to itself unless the test failed.
        for server in servers:
            print(f"--- {server.url} said:\n{server.logs.text[-_SHOWN:]}", end="")  # noqa: T201


@pytest.fixture(scope="session")
def load() -> Load:
    """Put load on a server and wait: `load(server, "/items", connections=8).assert_slo(p99="50ms")`."""
    from bridgehead.load import load as put

    def put_load(
        target: "Target",
        path: str = "",
        *,
        scenarios: "str | Sequence[Scenario] | None" = None,
        **options: "Unpack[LoadKeywords]",
    ) -> "Report":
        url = target if isinstance(target, str) else target.url
        if not options.keys() & {"duration", "requests"}:
            options["duration"] = _DURATION
        if url.startswith("unix:") and path:
            options["uds"] = url.removeprefix("unix:")
            url = "http://localhost"
        return put(f"{url}{path}", scenarios=scenarios, **options)

    return put_load


@pytest.fixture
def faulty_upstream() -> Iterator[MakeUpstream]:
    """Start upstreams with faults: `faulty_upstream(latency="20ms", error_rate=0.1, seed=1)`."""
    from bridgehead.testing.faults import FaultyUpstream

    with ExitStack() as held:
        yield lambda **faults: held.enter_context(FaultyUpstream(**faults))


@pytest.fixture
def ledger(tmp_path: "Path") -> "Folder":
    """A folder for what an application notes of its requests: `serve_app("shop:app", env=ledger.env)`."""
    from bridgehead.testing.ledger import Folder

    return Folder(tmp_path / "ledger")


@pytest.fixture
def canary(ledger: "Folder") -> Iterator[MakeCanary]:
    """Ask 20 times a second beside the test: `canary(server)`. It is checked at the end at the latest."""
    from bridgehead.testing.canary import Canary

    canaries: list[Canary] = []

    def begin(
        target: "Target", paths: "str | Iterable[str]" = "/", **options: "Unpack[CanaryKeywords]"
    ) -> "Canary":
        options.setdefault("ledger", ledger)
        canaries.append(held.enter_context(Canary(target, paths, **options)))
        return canaries[-1]

    with ExitStack() as held:
        yield begin
    for each in canaries:
        if not each.is_checked:
            each.check().assert_kept()


@pytest.fixture
def slow_client() -> Iterator[MakeClient]:
    """Clients that send a few bytes at a time."""
    from bridgehead.testing import clients

    yield from _closed(clients.slow_client)


@pytest.fixture
def resetting_client() -> Iterator[MakeClient]:
    """Clients that leave with a reset."""
    from bridgehead.testing import clients

    yield from _closed(clients.resetting_client)


@pytest.fixture
def half_closing_client() -> Iterator[MakeClient]:
    """Clients that close their sending half after the request."""
    from bridgehead.testing import clients

    yield from _closed(clients.half_closing_client)


@pytest.fixture
def never_reading_client() -> Iterator[MakeClient]:
    """Clients that never read the answer."""
    from bridgehead.testing import clients

    yield from _closed(clients.never_reading_client)


def _closed(make: Callable[..., C]) -> Iterator[MakeClient]:
    """What makes clients that are closed with the test."""
    with ExitStack() as held:
        yield lambda target, path="/", **request: held.enter_context(make(target, path, **request))
