"""An address to listen on, as an operator writes it.

Not a socket and not resolved: `sockets.py` does both.

Invariant: every text accepted here names exactly one kind of address; a port is never guessed.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from bridgehead.errors import StartError
from bridgehead.options import below, whole

_port = whole(0, 65535)
read_descriptor = whole(0, 2**31 - 1)

_HINT = "write host:port, [ipv6]:port, :port, unix:/path or fd://number"
_NAME = re.compile(r"[A-Za-z_][\w.@-]*", re.ASCII)  # a number is none
_STAR = "*"  # other servers' word for every address
_HOST_AND_PORT = re.compile(r"(?:\[(?P<six>[^\[\]]+)\]|(?P<host>[^\[\]:/]*)):(?P<port>[0-9]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpAddress:
    """A host (name or number; empty for every interface) and a port (0 for any free one)."""

    host: str
    port: int
    secure: bool = False  # clients are let in by TLS
    option: str = field(default="--bind", compare=False)  # by which another can be chosen

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnixAddress:
    """A socket file."""

    path: str
    secure: bool = False
    # Who may connect. uvicorn's: the proxy in front usually runs as another user.
    mode: int = field(default=0o666, compare=False)

    def __str__(self) -> str:
        return f"unix:{self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptorAddress:
    """A listening socket that whoever started us left open, by its number or by its name."""

    number: int = -1
    name: str = ""
    secure: bool = False

    def __str__(self) -> str:
        return f"fd://{self.name or self.number}"


Address = TcpAddress | UnixAddress | DescriptorAddress


def first_of(uds: str | None, fd: int | None, tcp: TcpAddress) -> Address:
    """As in uvicorn, a Unix socket is heard before a descriptor, and that before a host."""
    if uds is not None:
        return UnixAddress(path=uds)
    return tcp if fd is None else DescriptorAddress(number=fd)


def refuse_twice(addresses: Iterable[str]) -> None:
    """An address can be had once; port 0 is another port each time."""
    fixed = [each for each in addresses if not each.endswith(":0")]
    if twice := next((each for each in fixed if fixed.count(each) > 1), None):
        raise StartError(f"bind: {twice} is there twice", "name each address once")


def read_port(value: object) -> int:
    """An option's reader: a port; 0 for a free one."""
    try:
        return _port(value)
    except StartError as problem:
        hint = problem.hint
        if isinstance(value, str) and "://" in value:
            hint = "Kubernetes sets such variables for a service of this name: set enableServiceLinks: false"
        raise StartError(problem.message, hint) from None


def parse_address(written: str) -> Address:
    """Understand one `--bind`."""
    if written.startswith("unix:"):
        path = written.removeprefix("unix:").removeprefix("//")
        if path:
            return UnixAddress(path=path)
    elif written.startswith("fd://"):
        rest = written.removeprefix("fd://")
        if _NAME.fullmatch(rest):
            return DescriptorAddress(name=rest)
        return DescriptorAddress(number=read_descriptor(rest))
    elif written.startswith(f"{_STAR}:"):
        raise StartError(f"{written!r} is not an address", f"write {written[1:]} for every address")
    elif written.startswith("[") and written.endswith("]"):
        raise StartError(f"{written!r} is not an address", f"add a port: {written}:8000")
    elif parts := _HOST_AND_PORT.fullmatch(written):
        return TcpAddress(host=parts["six"] or parts["host"] or "", port=read_port(parts["port"]))
    elif written.count(":") > 1 and "/" not in written:
        raise StartError(f"{written!r} is not an address", "put an IPv6 host in brackets: [::1]:8000")
    raise StartError(f"{written!r} is not an address", _HINT)


def bindable(value: object) -> str:
    """An option's reader: the text, once it is known to be an address."""
    if not isinstance(value, str):
        raise StartError(f"{value!r} is not an address", _HINT)
    parse_address(value)
    return value


def bound_below(addresses: Any, folder: str) -> tuple[str, ...]:
    """An option's anchor: Unix sockets whose paths are relative to `folder`; all else stays."""
    return tuple(socket_below(each, folder) for each in addresses)


def socket_below(address: str, folder: str) -> str:
    """The same of one address."""
    found = parse_address(address)
    return f"unix:{below(found.path, folder)}" if isinstance(found, UnixAddress) else address


def bare_host(value: object) -> str:
    """An option's reader: a host, its IPv6 brackets taken off."""
    if not isinstance(value, str):
        raise StartError(f"{value!r} is not a host", "give a name or an address, such as 0.0.0.0")
    host = value.strip()
    if host == _STAR:
        raise StartError("'*' is not a host", "write 0.0.0.0 for every IPv4 address, :: for IPv6 as well")
    if parts := _HOST_AND_PORT.fullmatch(host):
        both = f"or both with --bind {host}"
        raise StartError(
            f"{host!r} is a host and a port", f"give the port with --port {parts['port']}, {both}"
        )
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host
