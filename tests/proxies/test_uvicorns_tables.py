"""uvicorn's own tests of its proxy headers, asked of this server: the tables of its source archive.

Its code is not run: a client is who its PROXY header says, and the scope says whom it was taken for.
"""

from __future__ import annotations

import ast
import contextlib
import ipaddress
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import UVICORN, Server, request

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(ROOT.glob("target/uvicorn/uvicorn-*/tests/middleware/test_proxy_headers.py"))
pytestmark = [
    pytest.mark.skipif(UVICORN, reason="uvicorn runs them itself"),
    pytest.mark.skipif(not FILES, reason="uvicorn's source is not here: .ci/uvicorn fetches it"),
]
# Trusted beside whomever a row trusts: the peer, and whoever stands in front of a list.
PEER, STRANGER = "203.0.113.250", "198.51.100.66"
Rows = list[tuple[Any, ...]]


def tables() -> dict[str, Rows]:
    """The rows of each test that has some, by its name."""
    module = ast.parse(FILES[-1].read_text(encoding="utf-8")) if FILES else ast.Module([], [])
    names: dict[str, Any] = {}
    found: dict[str, Rows] = {}
    for node in module.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                names[name] = ast.literal_eval(value)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                for decorator in node.decorator_list:
                    match decorator:
                        case ast.Call(func=ast.Attribute(attr="parametrize"), args=[_, ast.List(elts=rows)]):
                            found[name] = [_row(row, names) for row in rows]
    return found


def _row(row: ast.expr, names: dict[str, Any]) -> tuple[Any, ...]:
    cells = row.elts if isinstance(row, ast.Tuple) else [row]
    return tuple(names[cell.id] if isinstance(cell, ast.Name) else ast.literal_eval(cell) for cell in cells)


TABLES = tables()


class Servers:
    """One for each who is trusted."""

    def __init__(self) -> None:
        self._running: dict[str, Server] = {}

    def trusting(self, hosts: str | list[str], *others: str) -> Server:
        words = hosts if isinstance(hosts, str) else ",".join(hosts)
        if words != "*":
            words = ",".join(filter(None, (words, *others)))
        if words not in self._running:
            options = ("--proxy-protocol", "--forwarded-allow-ips", words)
            self._running[words] = Server("proxied_app:app", *options).__enter__()
        return self._running[words]

    def close(self) -> None:
        for server in self._running.values():
            server.__exit__(None, None, None)


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    running = Servers()
    yield running
    running.close()


def seen(server: Server, lists: str, proto: str | None = "https", *, peer: str = "127.0.0.1") -> str:
    """As uvicorn's tests show a client: scheme, host and port."""
    headers = [("X-Forwarded-For", lists)] + ([] if proto is None else [("X-Forwarded-Proto", proto)])
    with server.connect() as client:
        client.send(f"PROXY TCP4 {peer} 192.0.2.1 123 80\r\n".encode() + request("/", headers=headers))
        scope = client.read_response().json()
    host, port = scope["client"]
    with contextlib.suppress(ValueError):
        host = f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    return f"{scope['scheme']}://{host}:{port}"


def test_each_host_is_trusted_as_it_is_there(servers: Servers) -> None:
    rows = TABLES["test_forwarded_hosts"]
    assert len(rows) > 150
    wrong = []
    for trusted, host, expected in rows:
        server = servers.trusting(trusted, PEER)
        is_trusted = seen(server, f"{STRANGER}, {host}", peer=PEER) == f"https://{STRANGER}:0"
        if is_trusted != expected:
            wrong.append((trusted, host, expected))
    assert wrong == []


@pytest.mark.parametrize(
    ("table", "lists"),
    [
        ("test_proxy_headers_trusted_hosts", "1.2.3.4"),
        ("test_proxy_headers_multiple_proxies", "1.2.3.4, 10.0.2.1, 192.168.0.2"),
        (
            "test_proxy_headers_multiple_proxies_with_ports",
            "1.2.3.4:1234, [2001:db8::1]:8080, 192.168.0.2:9000",
        ),
    ],
)
def test_each_list_names_whom_it_names_there(servers: Servers, table: str, lists: str) -> None:
    assert TABLES[table]
    for trusted, expected in TABLES[table]:
        assert seen(servers.trusting(trusted), lists) == expected, trusted


def test_each_odd_list_names_whom_it_names_there(servers: Servers) -> None:
    server = servers.trusting("127.0.0.1, 10.0.0.0/8")
    for lists, proto, expected in TABLES["test_proxy_headers_trusted_hosts_malformed"]:
        assert seen(server, lists, proto) == expected, lists
    for lists, expected in TABLES["test_proxy_headers_x_forwarded_for_port_shapes"]:
        assert seen(servers.trusting("*"), lists) == expected, lists
