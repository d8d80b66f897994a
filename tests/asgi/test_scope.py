"""What an application is told about a request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import UVICORN, Client, Server, request


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("asgi_app:app", "--loop", loop) as server:
        yield server


def scope_of(client: Client, target: str = "/scope", **options: Any) -> dict[str, Any]:
    scope: dict[str, Any] = client.ask(target, **options).json()
    return scope


def test_the_scope_of_a_request_has_these_keys_and_values(server: Server) -> None:
    with server.connect() as client:
        scope = scope_of(client, "/scope/caf%C3%A9?q=%20")
        assert scope.pop("headers") == [["bytes:host", "bytes:test"]]
        assert scope.pop("client") == ["127.0.0.1", client.port]
    assert scope.pop("server") == ["127.0.0.1", server.port]
    assert scope.pop("asgi") == {"version": "3.0", "spec_version": "2.3" if UVICORN else "2.5"}
    assert scope.pop("state") == {"number": 1, "shared": []}
    assert isinstance(scope.pop("extensions", {}), dict)
    assert scope == {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/scope/café",
        "raw_path": "bytes:/scope/caf%C3%A9",
        "query_string": "bytes:q=%20",
        "root_path": "",
        "is_dict": True,
    }


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_the_http_version_is_as_the_specification_spells_it(server: Server, version: str) -> None:
    with server.connect() as client:
        assert scope_of(client, version=version)["http_version"] == version


def test_ports_are_integers(server: Server) -> None:
    with server.connect() as client:
        scope = scope_of(client)
    assert [type(scope[side][1]) for side in ("client", "server")] == [int, int]


def test_header_names_are_lower_case_and_values_are_as_they_came(server: Server) -> None:
    headers = [("X-Mixed-Case", "Mixed Value"), ("ACCEPT", "*/*"), ("x-latin", "\xe9\xff")]
    with server.connect() as client:
        assert scope_of(client, headers=headers)["headers"][1:] == [
            ["bytes:x-mixed-case", "bytes:Mixed Value"],
            ["bytes:accept", "bytes:*/*"],
            ["bytes:x-latin", "bytes:\xe9\xff"],
        ]


def test_duplicate_headers_are_kept_in_their_order(server: Server) -> None:
    headers = [("X-B", "1"), ("Cookie", "a=1"), ("X-A", "2"), ("x-b", "3"), ("Cookie", "b=2"), ("X-B", "1")]
    with server.connect() as client:
        assert scope_of(client, headers=headers)["headers"][1:] == [
            [f"bytes:{name.lower()}", f"bytes:{value}"] for name, value in headers
        ]


def test_space_around_a_header_value_is_no_part_of_it(server: Server) -> None:
    with server.connect() as client:
        client.send(b"GET /scope HTTP/1.1\r\nHost:test\r\nX: \t a  b \t \r\nY:\r\nZ: \r\n\r\n")
        headers = client.read_response().json()["headers"]
    assert headers == [
        ["bytes:host", "bytes:test"],
        ["bytes:x", "bytes:a  b"],
        ["bytes:y", "bytes:"],
        ["bytes:z", "bytes:"],
    ]


def test_framing_headers_stay_in_the_scope(server: Server) -> None:
    with server.connect() as client:
        names = [name for name, _ in scope_of(client, method="POST", body=b"x")["headers"]]
        assert "bytes:content-length" in names


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/scope?", "/scope", ""),
        ("/scope?a=%20&b=%C3%A9+", "/scope", "a=%20&b=%C3%A9+"),
        ("/scope/a%2Fb", "/scope/a/b", ""),
        ("/scope/%e2%82%ac", "/scope/€", ""),
        ("/scope/%F0%9F%A6%80", "/scope/🦀", ""),
    ],
)
def test_the_path_is_decoded_and_the_query_is_not(server: Server, target: str, path: str, query: str) -> None:
    with server.connect() as client:
        scope = scope_of(client, target)
    assert (scope["path"], scope["query_string"]) == (path, f"bytes:{query}")
    assert scope["raw_path"] == f"bytes:{target.partition('?')[0]}"


@pytest.mark.parametrize("escape", ["%FF", "%C3", "%ED%A0%80", "%C0%AF", "%80%80"])
def test_a_path_that_is_no_utf_8_is_refused_or_replaced_and_kept_raw(server: Server, escape: str) -> None:
    with server.connect() as client:
        response = client.ask(f"/scope/{escape}")
    assert response.status in (200, 400)
    if response.status == 200:
        scope = response.json()
        assert scope["raw_path"] == f"bytes:/scope/{escape}"
        assert scope["path"].startswith("/scope/")
        assert "%" not in scope["path"]


def test_a_root_path_is_in_front_of_the_path(loop: str) -> None:
    with (
        Server("asgi_app:Instance", "--factory", "--loop", loop, "--root-path", "/api/v1") as server,
        server.connect() as client,
    ):
        response = client.ask("/scope/x")
    # The application routes by the first segment of `path`, which is now the prefix.
    assert response.status == 404


def test_the_root_path_is_told(loop: str) -> None:
    with (
        Server("rooted_app:app", "--loop", loop, "--root-path", "/api/v1") as server,
        server.connect() as client,
    ):
        scope = client.ask("/x%20y").json()
    assert scope == {"root_path": "/api/v1", "path": "/api/v1/x y", "raw_path": scope["raw_path"]}
    assert scope["raw_path"] in ("/x%20y", "/api/v1/x%20y")


@pytest.mark.skipif(UVICORN, reason="uvicorn takes it as it is, in ASCII alone")
def test_a_root_path_is_in_front_of_the_raw_path_as_a_target_has_it(loop: str) -> None:
    with (
        Server("rooted_app:app", "--loop", loop, "--root-path", "/é x%20") as server,
        server.connect() as client,
    ):
        scope = client.ask("/a%2Fb").json()
    assert scope == {"root_path": "/é x%20", "path": "/é x%20/a/b", "raw_path": "/%C3%A9%20x%2520/a%2Fb"}


@pytest.mark.skipif(UVICORN, reason="uvicorn does not know the asterisk form")
def test_the_root_path_is_not_in_front_of_the_whole_server(loop: str) -> None:
    with (
        Server("rooted_app:app", "--loop", loop, "--root-path", "/api/v1") as server,
        server.connect() as client,
    ):
        scope = client.ask("*", method="OPTIONS").json()
    assert scope == {"root_path": "/api/v1", "path": "*", "raw_path": "*"}


def test_each_request_has_a_shallow_copy_of_the_lifespans_state(server: Server) -> None:
    with server.connect() as client:
        first = client.ask("/state/1").json()
        second = client.ask("/state/2").json()
        third = scope_of(client)["state"]
    assert (first["number"], second["number"], third["number"]) == (1, 1, 1)
    assert (first["extra"], second["extra"]) == (False, False)
    assert "extra" not in third
    # Shallow: what the values refer to is one and the same.
    assert second["shared"] == [*first["shared"], "/state/1"]
    server.ring("nothing")
    with server.connect() as client:
        shared = client.ask("/scope").json()["state"]["shared"]
    assert shared[-2:] == ["/state/1", "/state/2"]


def test_a_changed_scope_changes_nothing_for_the_next_request(server: Server) -> None:
    with server.connect() as client:
        assert client.ask("/mutate-scope").json() == 1
        assert client.ask("/mutate-scope").json() == 1
        scope = scope_of(client)
    assert scope["method"] == "GET"
    assert scope["asgi"]["version"] == "3.0"


def test_every_request_of_a_connection_has_its_own_scope(server: Server) -> None:
    with server.connect() as client:
        client.send(request("/scope/1") + request("/scope/2", method="PUT") + request("/scope/3?x"))
        scopes = [client.read_response().json() for _ in range(3)]
    assert [(scope["method"], scope["path"]) for scope in scopes] == [
        ("GET", "/scope/1"),
        ("PUT", "/scope/2"),
        ("GET", "/scope/3"),
    ]


def test_a_unix_socket_is_told_as_the_server(loop: str, tmp_path: Path) -> None:
    path = str(tmp_path / "server.sock")
    with Server("asgi_app:app", "--loop", loop, "--uds", path), Client(path) as client:
        scope = client.ask("/scope").json()
    assert scope["server"] == [path, None]
    assert scope["client"] is None


@pytest.mark.parametrize("target", ["asgi_app:plain_function", "asgi_app:instance", "asgi_app:method"])
def test_any_callable_that_returns_an_awaitable_is_an_application(loop: str, target: str) -> None:
    with Server(target, "--loop", loop) as server:
        response = server.ask("/state/callable")
        assert response.status == 200
        assert response.json()["number"] == 1


def test_a_factory_makes_the_application(loop: str) -> None:
    with Server("asgi_app:factory", "--factory", "--loop", loop) as server:
        assert server.ask("/state/factory").json()["number"] == 1
