"""What is asked of the servers, each row of the yardstick once.

Not how (`clients.py`) and of whom (`servers.py`).

Invariant: a workload knows the answer that is due, so that a server that answers something else is refused.
Its aim, where it has one, stands here too, so that no table is judged by hand.
"""

from dataclasses import dataclass
from typing import Literal

ITEM = b'{"name": "a cup", "price": 3.5, "tags": ["blue"]}'
# What a row's servers speak: HTTP/1.1 in the clear and by TLS, HTTP/2 by TLS and in the clear, WebSockets.
HTTP, HTTPS, H2, H2C, WS = "http", "https", "h2", "h2c", "ws"
SCHEMES = {HTTP: "http", HTTPS: "https", H2: "https", H2C: "http", WS: "ws"}
# What the cost beside the limit is to come to at most, or to be less than every peer's.
Aim = float | Literal["below all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One row."""

    name: str
    app: str = "apps:hello"
    path: str = "/"
    speaks: str = HTTP
    connections: int = 64
    due: bytes = b"hello"
    body: bytes = b""  # POST, if there is one
    content_type: str = "text/plain"
    client: str = "wrk"
    at_once: int = 1  # requests of a connection: pipelined, or streams
    patience: int = 2  # seconds that wrk waits for an answer: more is an error
    limit: str = "/"  # what hyper alone is asked for
    nginx: str | None = None  # what nginx is asked for, if it can
    concurrency: int = 1  # of the Python call alone
    aim: Aim | None = None
    quick: bool = False

    @property
    def service(self) -> tuple[str, str]:
        """What its servers are started for: those of one service are started once."""
        return self.app, self.speaks

    def due_at(self, path: str) -> bytes:
        """The body that is due there: hyper alone and nginx are asked for other paths."""
        if path == self.path:
            return self.due
        return {"/": b"hello", "/echo": self.body}.get(path, self.due)


def _messages(size: str, length: int) -> Workload:
    """Texts that are to come back."""
    return Workload(
        name=f"WebSocket echo {size}, 16",
        app="apps:messages",
        speaks=WS,
        connections=16,
        body=b"x" * length,
        due=b"x" * length,
        client="ours",
        aim=1.4,
    )


WORKLOADS = (
    Workload(name="hello, 1 connection", aim=1.5, connections=1, nginx="/", quick=True),
    Workload(name="hello, 16", aim=1.4, connections=16, nginx="/"),
    Workload(name="hello, 64", aim=1.3, nginx="/", quick=True),
    Workload(name="hello, 256", aim=1.4, connections=256, nginx="/"),
    Workload(name="hello, 1024", aim=1.4, connections=1024, nginx="/"),
    Workload(name="a connection a request", aim=1.3, connections=16, client="ours", nginx="/"),
    Workload(name="16 pipelined", aim=4, connections=16, client="h2load", at_once=16, nginx="/"),
    Workload(name="hello after receive()", app="apps:reads"),
    Workload(
        name="Starlette JSON",
        aim=1.2,
        app="frameworks:json_app",
        path="/json",
        due=b'{"message":"hello","path":"/json"}',
        quick=True,
    ),
    Workload(
        name="FastAPI, pydantic body",
        aim=1.08,
        app="frameworks:api",
        path="/items/7?verbose=true",
        body=ITEM,
        content_type="application/json",
        due=b'{"number":7,"verbose":true,"name":"a cup","price":3.5}',
        limit="/echo",
    ),
    Workload(
        name="POST echo 1 KB",
        aim=1.4,
        app="apps:echo",
        body=b"x" * 1024,
        due=b"x" * 1024,
        limit="/echo",
        quick=True,
    ),
    Workload(
        name="POST echo 64 KB", aim=1.6, app="apps:echo", body=b"x" * 65536, due=b"x" * 65536, limit="/echo"
    ),
    Workload(
        name="GET 10 KB", aim=1.3, app="apps:body_10k", due=b"x" * 10_240, limit="/size/10240", nginx="/10k"
    ),
    Workload(
        name="GET 1 MB",
        aim=1.05,
        app="apps:body_1m",
        due=b"x" * 1_048_576,
        limit="/size/1048576",
        nginx="/1m",
    ),
    Workload(name="stream of 100 × 1 KB", aim=1.4, app="apps:streams", due=b"x" * 102_400, limit="/stream"),
    Workload(
        name="sleep(0.01), 256", aim=1.25, app="apps:sleeps", connections=256, concurrency=256, quick=True
    ),
    Workload(name="ten sleep(0)", aim=1.2, app="apps:yields", concurrency=64),
    Workload(name="twenty coroutines", aim=1.2, app="apps:coroutines"),
    Workload(name="anyio.to_thread", aim=1.12, app="apps:threads", concurrency=16),
    Workload(name="upstream round trip", aim="below all", app="apps:asks", concurrency=64),
    Workload(name="HTTPS, hello, 64", aim=1.3, speaks=HTTPS),
    Workload(name="HTTP/2 by TLS, 16 × 16", aim=2.2, speaks=H2, connections=16, client="h2load", at_once=16),
    Workload(
        name="HTTP/2 in the clear, 16 × 16", aim=2.2, speaks=H2C, connections=16, client="h2load", at_once=16
    ),
    _messages("64 B", 64),
    _messages("16 KB", 16_384),
)
