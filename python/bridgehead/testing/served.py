"""A server under test, wherever it runs: its address, its clients, its log, its end.

Not how it is started (`in_process.py`, `in_thread.py`).

Invariant: leaving the `with` block ends the server, and fails if it did not end well.
"""

from abc import ABC, abstractmethod
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from bridgehead.testing.logs import Logs

if TYPE_CHECKING:
    import httpx

# Two busy cores, a cold import of a framework: only a test that fails waits this long.
STARTUP_SECONDS = 30.0
STOP_SECONDS = 15.0
# Characters of a log.
_SHOWN = 20_000


class Served(ABC):
    """A running server."""

    def __init__(self, *, allow: tuple[str, ...] = ()) -> None:
        self.logs = Logs()
        self._allow = allow
        self._address = ""
        self._client: httpx.Client | None = None
        self._held = ExitStack()

    # --- how to reach it

    @property
    def url(self) -> str:
        """Its address, as clients want it: `http://127.0.0.1:41234`, or `unix:/path/to.sock`."""
        return self._address

    @property
    def port(self) -> int:
        """The port it listens on."""
        if self.uds is not None:
            raise AttributeError(f"a server on {self.url} has no port")
        return int(self.url.rpartition(":")[2])

    @property
    def ws_url(self) -> str:
        """The same for WebSockets: `ws://127.0.0.1:41234`, or `wss://…` by TLS."""
        if self.uds is not None:
            raise AttributeError(f"a server on {self.url} has no address for WebSockets")
        return self.url.replace("http", "ws", 1)

    @property
    def uds(self) -> str | None:
        """The Unix socket it listens on, if it does."""
        return self.url.removeprefix("unix:") if self.url.startswith("unix:") else None

    @property
    def client(self) -> "httpx.Client":
        """An httpx client for it, closed with the server: 15 seconds, any certificate, and no proxy."""
        if self._client is None:
            package = _httpx()
            # The server is the test's own, and so is its certificate.
            transport = package.HTTPTransport(uds=self.uds, verify=False)
            client = package.Client(base_url=self._base, transport=transport, timeout=15.0, trust_env=False)
            self._client = self._held.enter_context(client)
        return self._client

    def async_client(self) -> "httpx.AsyncClient":
        """An asynchronous one: `async with server.async_client() as client:`."""
        package = _httpx()
        transport = package.AsyncHTTPTransport(uds=self.uds, verify=False)
        client: httpx.AsyncClient = package.AsyncClient(
            base_url=self._base, transport=transport, timeout=15.0, trust_env=False
        )
        return client

    @property
    def _base(self) -> str:
        return "http://localhost" if self.uds is not None else self.url

    # --- its life

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._held.close()
            if kind is None:
                self.stop()
        finally:
            self._end()

    @abstractmethod
    def stop(self) -> None:
        """End it in order, and assert that it ended well: in time, and with nothing to complain of."""

    @abstractmethod
    def _start(self) -> None:
        """Until it has said that it serves."""

    @abstractmethod
    def _end(self) -> None:
        """Whatever is left of it, by force. May be called twice."""

    def _assert_no_complaints(self) -> None:
        complaints = self.logs.complaints(self._allow)
        assert not complaints, (
            f"the server said {complaints[0]!r} (if the test provokes it: allow=[…]);"
            f" all it said:\n{self.logs.text[-_SHOWN:]}"
        )


def _httpx() -> Any:
    """The package, which Bridgehead itself does not need."""
    try:
        import httpx
    except ImportError:
        raise ImportError("a server's client is httpx's: pip install bridgehead[testing]") from None
    return httpx
