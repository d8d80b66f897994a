"""`uvicorn.middleware.proxy_headers`: who the client is, by the word of trusted proxies.

Not `--proxy-headers`, which does the same in Rust, for all of a server and by default.

Invariant: from an address that is not trusted, nothing is taken.
"""

import ipaddress
from typing import Any

from bridgehead.forwarded import trusted

_SCHEMES = frozenset({"http", "https", "ws", "wss"})


class _TrustedHosts:
    """Who may say who the client is."""

    def __init__(self, trusted_hosts: list[str] | str) -> None:
        words = trusted_hosts if isinstance(trusted_hosts, str) else ",".join(trusted_hosts)
        self._known = trusted(words)
        self.always_trust = self._known.everybody

    def __contains__(self, host: str | None) -> bool:
        if self.always_trust or not host:
            return self.always_trust
        if host in self._known.names:
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        networks = (ipaddress.ip_network(f"{base}/{prefix}") for base, prefix in self._known.networks)
        return address.compressed in self._known.addresses or any(address in each for each in networks)

    def get_trusted_client_address(self, x_forwarded_for: str) -> tuple[str, int]:
        """From right to left, the first who is not trusted; else who is farthest."""
        chain = [each.strip() for each in x_forwarded_for.split(",")]
        if self.always_trust:
            return _parted(chain[0])
        for each in reversed(chain):
            host, port = _parted(each)
            if host not in self:
                return host, port
        return _parted(chain[0])


class ProxyHeadersMiddleware:
    """Takes `X-Forwarded-For` and `X-Forwarded-Proto` from `trusted_hosts`."""

    def __init__(self, app: Any, trusted_hosts: list[str] | str = "127.0.0.1") -> None:
        self.app = app
        self.trusted_hosts = _TrustedHosts(trusted_hosts)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """As any ASGI 3 application is called."""
        client = scope.get("client")
        if scope["type"] != "lifespan" and (client[0] if client else None) in self.trusted_hosts:
            self._tell(scope)
        await self.app(scope, receive, send)

    def _tell(self, scope: Any) -> None:
        """What the proxies say, into the scope."""
        values: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            values.setdefault(name, []).append(value)
        scheme = values.get(b"x-forwarded-proto", [b""])[-1].decode("latin-1").strip()
        if scheme in _SCHEMES:
            scope["scheme"] = scheme.replace("http", "ws") if scope["type"] == "websocket" else scheme
        chain = b",".join(values.get(b"x-forwarded-for", [])).decode("latin-1")
        host, port = self.trusted_hosts.get_trusted_client_address(chain)
        if host:
            scope["client"] = (host, port)


def _parted(value: str) -> tuple[str, int]:
    """A host, and a port where one is written: `1.2.3.4:80`, `[::1]:80`. What is neither stays as it is."""
    bracketed = value.startswith("[")
    host, found, rest = value[1:].partition("]") if bracketed else value.partition(":")
    port = rest.removeprefix(":") if bracketed else rest
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return value, 0
    if bracketed:
        is_whole = bool(found) and (not rest or rest.startswith(":"))
        return (host, _number(port)) if is_whole else (value, 0)
    return (host, _number(port)) if not port or _number(port) else (value, 0)


def _number(port: str) -> int:
    """A port's, or 0 for what is none."""
    return int(port) if port.isascii() and port.isdecimal() and int(port) < 65_536 else 0
