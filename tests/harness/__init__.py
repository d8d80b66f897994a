"""How tests talk to the server: as another process, by bytes over real sockets.

Not a client library: nothing here knows more HTTP than a test needs to read an answer.
Invariant: no readiness is guessed by sleeping; every wait has a deadline and says what it waited for.
"""

from harness.client import Client, ClosedError, Response, request
from harness.server import APPS, HAS_FUSED, UVICORN, Server, has_ipv6, uvloop_is_installed
from harness.verdicts import assert_refused, seen
from harness.websocket import WebSocket, handshake

__all__ = [
    "APPS",
    "HAS_FUSED",
    "UVICORN",
    "Client",
    "ClosedError",
    "Response",
    "Server",
    "WebSocket",
    "assert_refused",
    "handshake",
    "has_ipv6",
    "request",
    "seen",
    "uvloop_is_installed",
]
