"""Who a client is, by the certificate that it shows: mutual TLS, and what ASGI's `tls` extension says of it.

Run it: serve examples/who_by_certificate.py --ssl-self-signed
Then:   curl -k https://127.0.0.1:8000/

With `--ssl-certfile`, `--ssl-keyfile`, `--ssl-cert-reqs 1` and `--ssl-ca-certs` it greets each client by its
name: docs/tls.md.
"""


async def app(scope, receive, send):  # noqa: ARG001 - ASGI hands all three over
    """Greet a client by its certificate's name."""
    if scope["type"] != "http":
        raise NotImplementedError(f"{scope['type']} is not served here")
    tls = scope["extensions"].get("tls")
    if tls is None:
        status, words = 403, "Come by https\n"
    elif tls["client_cert_name"] is None:
        status, words = 200, f"Hello, whoever you are, by TLS {tls['tls_version']:#06x}\n"
    else:
        status, words = 200, f"Hello, {tls['client_cert_name']}\n"
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": words.encode()})
