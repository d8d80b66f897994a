"""Real proxies in front: what HAProxy and nginx say of a client is what an application sees.

Skipped where they cannot be had; `make test` unpacks Debian's.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from harness import UVICORN, Client, Server, request
from real_proxies import free_port, haproxy, nginx, nginx_module, program

LOCAL = "127.0.0.1"
TARGET = "proxied_app:app"
ASK = request(
    "/items", host="shop.test", headers=[("X-Forwarded-For", "6.6.6.6"), ("Forwarded", "for=7.7.7.7")]
)

pytestmark = pytest.mark.skipif(UVICORN, reason="these are Bridgehead's own")
with_haproxy = pytest.mark.skipif(
    program("haproxy") is None, reason="no HAProxy here: .ci/proxies unpacks one"
)
with_nginx = pytest.mark.skipif(program("nginx") is None, reason="no nginx here: .ci/proxies unpacks one")
with_streams = pytest.mark.skipif(
    program("nginx") is None or nginx_module("ngx_stream_module.so") is None,
    reason="no nginx with streams here: .ci/proxies unpacks one",
)


def tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def asked(client: Client, times: int = 2) -> dict[str, Any]:
    """What the application saw, the same for each request of the connection."""
    seen = []
    for _ in range(times):
        client.send(ASK)
        answer = client.read_response()
        assert answer.status == 200, answer
        seen.append(answer.json())
    assert all(each["client"] == seen[0]["client"] for each in seen)
    return dict(seen[0])


@with_haproxy
@pytest.mark.parametrize(
    "word", ["send-proxy", "send-proxy-v2", "send-proxy-v2 proxy-v2-options crc32c,unique-id"]
)
@pytest.mark.parametrize("secure", [False, True], ids=["in the clear", "through TLS"])
def test_haproxy_names_a_client_before_its_bytes(tmp_path: Path, word: str, secure: bool) -> None:
    options = ("--proxy-protocol", "--no-proxy-headers", *(("--ssl-self-signed",) if secure else ()))
    with Server(TARGET, *options) as server:
        port = free_port()
        configuration = (
            f"listen web\n  mode tcp\n  bind {LOCAL}:{port}\n  unique-id-format test\n"
            f"  server one {LOCAL}:{server.port} {word} check check-send-proxy inter 200ms\n"
        )
        with haproxy(tmp_path, configuration, port), Client((LOCAL, port)) as client:
            own = client.port
            if secure:
                client.socket = tls().wrap_socket(client.socket, server_hostname="shop.test")
            scope = asked(client)
            assert (scope["client"], scope["server"]) == ([LOCAL, own], [LOCAL, port])
            assert scope["scheme"] == ("https" if secure else "http")
            server.wait_line(f'{LOCAL}:{own} - "GET /items HTTP/1.1" 200', stream="stdout", count=2)


@with_haproxy
def test_haproxy_ends_tls_and_says_so_by_what_it_adds(tmp_path: Path) -> None:
    headers = "--forwarded-headers", "forwarded"
    with Server(TARGET, *headers) as server:
        port = free_port()
        configuration = (
            f"listen web\n  mode http\n  bind {LOCAL}:{port}\n"
            "  http-request del-header forwarded\n"
            "  http-request set-header forwarded "
            '"for=%[src];proto=https;host=%[req.hdr(host)]"\n'
            f"  server one {LOCAL}:{server.port}\n"
        )
        with haproxy(tmp_path, configuration, port), Client((LOCAL, port)) as client:
            scope = asked(client)
            assert (scope["client"], scope["scheme"], scope["host"]) == ([LOCAL, 0], "https", "shop.test")


@with_haproxy
def test_both_ways_together_name_whoever_is_farther(tmp_path: Path) -> None:
    """Addresses by the protocol, then what that client says, if it is trusted as well."""
    with Server(TARGET, "--proxy-protocol", "--forwarded-headers", "for,proto,host,prefix") as server:
        port = free_port()
        configuration = (
            f"listen web\n  mode http\n  option forwardfor\n  bind {LOCAL}:{port}\n"
            "  http-request set-header x-forwarded-prefix /shop\n"
            "  http-request set-header x-forwarded-host outer.test\n"
            f"  server one {LOCAL}:{server.port} send-proxy-v2\n"
        )
        with haproxy(tmp_path, configuration, port), Client((LOCAL, port)) as client:
            scope = asked(client)
            # The list is "6.6.6.6", then what HAProxy added: this client, who is trusted here.
            assert (scope["client"], scope["host"]) == (["6.6.6.6", 0], "outer.test")
            assert (scope["root_path"], scope["path"]) == ("/shop", "/shop/items")


@with_nginx
@pytest.mark.parametrize("by", ["tcp", "unix"])
def test_nginx_names_a_client_in_headers(tmp_path: Path, by: str) -> None:
    path = tmp_path / "s"
    options = ("--uds", str(path), "--forwarded-allow-ips", "unix") if by == "unix" else ()
    with Server(TARGET, *options, "--forwarded-headers", "for,proto,host,port,prefix") as server:
        port = free_port()
        upstream = f"unix:{path}" if by == "unix" else f"{LOCAL}:{server.port}"
        configuration = (
            f"http {{\n  server {{\n    listen {LOCAL}:{port};\n    location / {{\n"
            f"      proxy_pass http://{upstream};\n      proxy_http_version 1.1;\n"
            '      proxy_set_header Connection "";\n      proxy_set_header Host inner.test;\n'
            "      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\n"
            "      proxy_set_header X-Forwarded-Proto https;\n"
            "      proxy_set_header X-Forwarded-Host $host;\n"
            "      proxy_set_header X-Forwarded-Port 8443;\n"
            "      proxy_set_header X-Forwarded-Prefix /shop;\n    }\n  }\n}\n"
        )
        with nginx(tmp_path, configuration, port), Client((LOCAL, port)) as client:
            scope = asked(client)
            # By TCP the client is trusted as well, and so the list is walked on.
            assert scope["client"] == (["6.6.6.6", 0] if by == "tcp" else [LOCAL, 0])
            assert (scope["scheme"], scope["host"]) == ("https", "shop.test:8443")
            assert (scope["root_path"], scope["path"]) == ("/shop", "/shop/items")


@with_streams
@pytest.mark.parametrize("secure", [False, True], ids=["in the clear", "through TLS"])
def test_nginx_names_a_client_before_its_bytes(tmp_path: Path, secure: bool) -> None:
    options = ("--proxy-protocol", "--no-proxy-headers", *(("--ssl-self-signed",) if secure else ()))
    with Server(TARGET, *options) as server:
        port = free_port()
        configuration = (
            f"stream {{\n  server {{\n    listen {LOCAL}:{port};\n    proxy_protocol on;\n"
            f"    proxy_pass {LOCAL}:{server.port};\n  }}\n}}\n"
        )
        with nginx(tmp_path, configuration, port), Client((LOCAL, port)) as client:
            own = client.port
            if secure:
                client.socket = tls().wrap_socket(client.socket, server_hostname="shop.test")
            scope = asked(client)
            assert (scope["client"], scope["server"]) == ([LOCAL, own], [LOCAL, port])


@with_nginx
@with_haproxy
def test_two_of_them_are_seen_through(tmp_path: Path) -> None:
    """HAProxy at the edge, nginx behind it: what the outer one says reaches the scope."""
    inner, outer = free_port(), free_port()
    (tmp_path / "inner").mkdir()
    with Server(
        TARGET, "--forwarded-headers", "forwarded", "--forwarded-allow-ips", f"{LOCAL},192.0.2.7"
    ) as server:
        behind = (
            f"http {{\n  server {{\n    listen {LOCAL}:{inner};\n    location / {{\n"
            f"      proxy_pass http://{LOCAL}:{server.port};\n      proxy_http_version 1.1;\n"
            '      proxy_set_header Forwarded "$http_forwarded, for=192.0.2.7;proto=http";\n    }\n  }\n}\n'
        )
        edge = (
            f"listen web\n  mode http\n  bind {LOCAL}:{outer}\n"
            '  http-request set-header forwarded "for=198.51.100.4:99;proto=https;host=edge.test"\n'
            f"  server one {LOCAL}:{inner}\n"
        )
        with (
            nginx(tmp_path / "inner", behind, inner),
            haproxy(tmp_path, edge, outer),
            Client((LOCAL, outer)) as client,
        ):
            scope = asked(client)
            assert (scope["client"], scope["scheme"]) == (["198.51.100.4", 99], "https")
            assert scope["host"] == "edge.test"
