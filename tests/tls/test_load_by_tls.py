"""`bridgehead load` by TLS: no certificate is verified, and each connection shakes hands."""

from __future__ import annotations

from harness import APPS
from secured import file

from bridgehead.pytest_plugin import Load, ServeApp


def test_load_is_put_on_a_server_by_tls(serve_app: ServeApp, load: Load) -> None:
    certificate, key = file("server.pem"), file("server.key")
    server = serve_app("tls_app:app", cwd=APPS, ssl_certfile=certificate, ssl_keyfile=key)
    report = load(server, "/tls", requests=50, connections=4, expect_body='"scheme": "https"')
    assert (report.requests, report.errors) == (50, 0)
    short = load(server, "/tls", requests=10, connections=2, keep_alive=False)
    assert (short.requests, short.errors) == (10, 0)
    clear = load(f"http://localhost:{server.port}/", requests=1, connections=1)
    assert clear.errors == 1


def test_load_by_tls_on_who_does_not_speak_it_is_an_error(serve_app: ServeApp, load: Load) -> None:
    server = serve_app("tls_app:app", cwd=APPS)
    report = load(f"https://localhost:{server.port}/", requests=2, connections=1)
    assert report.errors_by_kind == {"connect": 2}
