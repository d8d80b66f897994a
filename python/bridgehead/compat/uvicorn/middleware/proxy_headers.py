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
        if not isinstance(trusted_hosts, str):
            # Each is one as it stands there, and what is no address trusts nobody.
            trusted_hosts = ",".join(
                each for each in trusted_hosts if each == each.strip(" ,\t") and "," not in each
            )
        self._known = trusted(trusted_hosts)
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


class DoneBefore(ProxyHeadersMiddleware):
    """For who reaches `config.loaded_app.app`. Rust has taken the headers by then."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Somebody has put theirs around it."""
        await self.app(scope, receive, send)


def _parted(value: str) -> tuple[str, int]:
    """A host, and a port where one is written, as `forwarded.rs` reads them: `1.2.3.4:80`, `[::1]:80`."""
    if value.startswith("["):
        host, found, rest = value[1:].partition("]")
        return (host, _number(rest[1:]) or 0) if found and rest[:1] in ("", ":") else (value, 0)
    host, _, rest = value.partition(":")
    port = _number(rest)
    return (value, 0) if port is None else (host, port)


def _number(text: str) -> int | None:
    """A port's, unless it is none: int() would take a sign and letters of other scripts."""
    if not (text.isascii() and text.isdecimal()):
        return None
    digits = text.lstrip("0") or "0"
    return int(digits) if len(digits) <= 5 and int(digits) < 65_536 else None
