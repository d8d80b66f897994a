"""`uvicorn.middleware.proxy_headers`: who the client is, by the word of trusted proxies.

Not `--proxy-headers`, which does the same in Rust, for all of a server and by default.

Invariant: from an address that is not trusted, nothing is taken.
"""

import ipaddress
from typing import Any

from bridgehead.forwarded import trusted

_SCHEMES = frozenset({"http", "https", "ws", "wss"})


class ProxyHeadersMiddleware:
    """Takes `X-Forwarded-For` and `X-Forwarded-Proto` from `trusted_hosts`."""

    def __init__(self, app: Any, trusted_hosts: list[str] | str = "127.0.0.1") -> None:
        self.app = app
        words = trusted_hosts if isinstance(trusted_hosts, str) else ",".join(trusted_hosts)
        self._trusted = trusted(words)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """As any ASGI 3 application is called."""
        client = scope.get("client")
        if scope["type"] != "lifespan" and self._trusts(client[0] if client else ""):
            scope = self._told(scope)
        await self.app(scope, receive, send)

    def _told(self, scope: Any) -> Any:
        """The scope as the proxies tell it."""
        values: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            values.setdefault(name, []).append(value)
        scheme = values.get(b"x-forwarded-proto", [b""])[-1].decode("latin-1").strip()
        if scheme in _SCHEMES:
            secure = scheme in ("https", "wss")
            plain = "ws" if scope["type"] == "websocket" else "http"
            scope["scheme"] = f"{plain}s" if secure else plain
        chain = b",".join(values.get(b"x-forwarded-for", [])).decode("latin-1")
        host, port = self._nearest_untrusted([each.strip() for each in chain.split(",")])
        if host:
            scope["client"] = (host, port)
        return scope

    def _nearest_untrusted(self, chain: list[str]) -> tuple[str, int]:
        """From right to left, the first who is nobody of ours; else who is farthest."""
        if self._trusted.everybody:
            return _parted(chain[0])
        for each in reversed(chain):
            host, port = _parted(each)
            if not self._trusts(host):
                return host, port
        return _parted(chain[0])

    def _trusts(self, host: str) -> bool:
        known = self._trusted
        if known.everybody:
            return True
        if not host or host in known.names:
            return bool(host)
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        networks = (ipaddress.ip_network(f"{base}/{prefix}") for base, prefix in known.networks)
        return address.compressed in known.addresses or any(address in each for each in networks)


def _parted(value: str) -> tuple[str, int]:
    """A host, and a port where one is written: `1.2.3.4:80`, `[::1]:80`. What is neither stays as it is."""
    if value.startswith("["):
        host, _, rest = value[1:].partition("]")
        port = rest.removeprefix(":")
    else:
        host, _, port = value.partition(":")
        if ":" in port:
            return value, 0
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return value, 0
    return (
        (host, int(port))
        if port.isdecimal() and int(port) < 65_536
        else (host, 0)
        if not port
        else (value, 0)
    )
