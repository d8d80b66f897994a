"""Binds the addresses of a configuration; Rust accepts on the descriptors.

Not the accept loop. Not name parsing: `address.py` has judged what was written.

Invariant: an address is ours alone or the start fails. No SO_REUSEPORT, and no live socket file is replaced.
"""

import errno
import os
import re
import socket
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from bridgehead import activation
from bridgehead.address import Address, DescriptorAddress, TcpAddress, UnixAddress
from bridgehead.errors import StartError
from bridgehead.socket_file import SocketFile, alone_beside, is_left_over, make_room

Resolved = tuple[socket.AddressFamily, tuple[Any, ...]]  # the second as `getsockname` gives it

_SHARED_PORT_TRIES = 16  # port 0 on several addresses: the first's port may be taken on the next
_NUMBERS = re.compile(r"[0-9a-f:.]+")
_SOMAXCONN = Path("/proc/sys/net/core/somaxconn")
_LISTENABLE = (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX)
_BOUND = "pass a stream socket that is bound to an address, as systemd does (its first is fd 3)"
# The host has no such address or no such family: the others that its name resolves to will do.
_ABSENT = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


def longest_backlog() -> int | None:
    """The most clients that may wait for a socket of ours; None where the system does not say."""
    try:
        return int(_SOMAXCONN.read_text())
    except (OSError, ValueError):
        return None


class Kind(StrEnum):
    """What a client connects to."""

    TCP = "tcp"
    UNIX = "unix"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A listening socket, and how to print it: `https://127.0.0.1:8000`, `unix socket /run/app.sock`."""

    socket: socket.socket
    kind: Kind
    label: str
    file: SocketFile | None = None
    inherited: bool = False
    """Somebody else made it, and may go on listening on it."""
    secure: bool = False
    """Clients are let in by TLS."""

    def secured(self) -> "Bound":
        """The same, by TLS."""
        return replace(self, secure=True, label=self.label.replace("http://", "https://", 1))

    def fileno(self) -> int:
        """The socket's number."""
        return self.socket.fileno()

    def close(self) -> None:
        """Close the socket unless it was detached, and remove its file. Twice is as good as once."""
        self.socket.close()
        if self.file is not None:
            self.file.remove()


def bind(addresses: Iterable[Address], *, backlog: int) -> list[Bound]:
    """Listen on every address, or on none."""
    bound: list[Bound] = []
    with ExitStack() as undo:
        for address in addresses:
            try:
                found = _bind_one(address, backlog)
            except StartError as problem:
                if isinstance(address, TcpAddress) and _is_taken(problem):
                    _refuse_clash(address, bound)
                raise
            for each in found:
                undo.callback(each.close)
                bound.append(each.secured() if address.secure else each)
        undo.pop_all()
    return bound


def refuse_taken(addresses: Iterable[Address]) -> None:
    """Say at once what keeps one of them from being listened on; nothing is listened on, or kept."""
    for address in addresses:
        match address:
            case TcpAddress():
                for each in _bind_tcp(address, None):
                    each.close()
            case UnixAddress():
                try:
                    is_left_over(address.path)
                    os.stat(os.path.dirname(address.path) or os.curdir)
                except OSError as problem:
                    raise _refusal(address, problem) from None
            case DescriptorAddress():
                for number in _numbers(address):
                    sock = _opened(number, str(address))
                    try:
                        _insist_on_clients(sock, str(address))
                    finally:
                        sock.detach()


def _is_taken(problem: StartError) -> bool:
    return isinstance(problem.__context__, OSError) and problem.__context__.errno == errno.EADDRINUSE


def _refuse_clash(address: TcpAddress, bound: list[Bound]) -> None:
    """If it is ourselves who listen there, nobody should look for another server."""
    for _, (host, port, *_) in _resolve(address):
        for each in bound:
            if each.kind is Kind.TCP and each.socket.getsockname()[1] == port:
                hosts = {host, each.socket.getsockname()[0]}
                fours = "0.0.0.0" in hosts and not any(":" in each for each in hosts)
                if len(hosts) == 1 or "::" in hosts or fours:
                    hint = "one of them includes the other: keep one"
                    raise StartError(f"{address} clashes with {each.label}, which is ours too", hint)


def _bind_one(address: Address, backlog: int) -> list[Bound]:
    match address:
        case TcpAddress():
            return _bind_tcp(address, backlog)
        case UnixAddress():
            return [_bind_unix(address, backlog)]
        case DescriptorAddress():
            return [_adopt(replace(address, number=each), backlog) for each in _numbers(address)]


def _numbers(address: DescriptorAddress) -> list[int]:
    return activation.numbers(address.name) if address.name else [address.number]


def _bind_tcp(address: TcpAddress, backlog: int | None) -> list[Bound]:
    """Without a backlog it is not listened on; who else does that is found all the same."""
    resolved = _resolve(address)
    tries = _SHARED_PORT_TRIES if address.port == 0 and len(resolved) > 1 else 1
    while True:
        tries -= 1
        try:
            return _listen_on_each(resolved, backlog)
        except OSError as problem:
            if problem.errno != errno.EADDRINUSE or tries == 0:
                raise _refusal(address, problem) from None


def _resolve(address: TcpAddress) -> list[Resolved]:
    """Every address the host stands for, without repetition."""
    host = address.host or ("::" if _has_ipv6() else "0.0.0.0")
    try:
        # As bytes, since Python encodes a text by IDNA, whose tables take a millisecond to load.
        given = host.encode() if _NUMBERS.fullmatch(host) else host
        found = socket.getaddrinfo(given, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as problem:  # UnicodeError: a label that IDNA refuses
        reason = problem.strerror if isinstance(problem, OSError) else problem
        hint = "give an address of this machine, or 0.0.0.0 for all of them"
        raise StartError(f"the host {address.host!r} cannot be resolved: {reason}", hint) from None
    return list(dict.fromkeys((family, place) for family, _, _, _, place in found))


def _has_ipv6() -> bool:
    """Whether a socket can be bound; containers often have the family but no address."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::", 0))
    except OSError:
        return False
    return True


def _listen_on_each(resolved: list[Resolved], backlog: int | None) -> list[Bound]:
    bound: list[Bound] = []
    absent: OSError | None = None
    with ExitStack() as undo:
        for family, (host, port, *scope) in resolved:
            shared_port = bound[0].socket.getsockname()[1] if bound else port
            try:
                each = _listen_tcp(family, (host, shared_port, *scope), backlog)
            except OSError as problem:
                if problem.errno not in _ABSENT:
                    raise
                absent = problem
                continue
            undo.callback(each.close)
            bound.append(each)
        if not bound and absent is not None:
            raise absent
        undo.pop_all()
    return bound


def _listen_tcp(family: socket.AddressFamily, place: tuple[Any, ...], backlog: int | None) -> Bound:
    with ExitStack() as undo:
        sock = undo.enter_context(socket.socket(family, socket.SOCK_STREAM))
        # A restart must not wait for the last connections of the server before it (TIME_WAIT).
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, place[0] != "::")
        sock.bind(place)
        if backlog is not None:
            sock.listen(backlog)  # only now is the address ours: Linux lets two sockets with REUSEADDR bind
        sock.setblocking(False)
        undo.pop_all()
    return Bound(socket=sock, kind=Kind.TCP, label=_label(sock))


def _bind_unix(address: UnixAddress, backlog: int) -> Bound:
    try:
        with alone_beside(address.path), ExitStack() as undo:
            make_room(address.path)
            sock = undo.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            sock.bind(address.path)
            file = SocketFile.at(address.path)
            undo.callback(file.remove)
            sock.listen(backlog)  # at once: until then it looks like a dead server's
            os.chmod(address.path, address.mode)
            sock.setblocking(False)
            undo.pop_all()
    except OSError as problem:
        raise _refusal(address, problem) from None
    return Bound(socket=sock, kind=Kind.UNIX, label=_label(sock), file=file)


def adopt(sockets: Iterable[socket.socket], *, backlog: int, secure: bool = False) -> list[Bound]:
    """Listen on sockets that a caller has bound; they are closed as ours."""
    bound = [_listening(each, "the socket", backlog) for each in sockets]
    return [each.secured() for each in bound] if secure else bound


def _adopt(address: DescriptorAddress, backlog: int) -> Bound:
    """Take over a socket that was opened for us; it is closed as ours."""
    sock = _opened(address.number, str(address))
    try:
        return _listening(sock, str(address), backlog)
    except StartError:
        sock.detach()  # not what we were promised, so not ours to close
        raise


def _opened(number: int, name: str) -> socket.socket:
    try:
        return socket.socket(fileno=number)
    except OSError as problem:
        raise StartError(f"{name} is not an open socket: {problem.strerror}", _BOUND) from None


def _insist_on_clients(sock: socket.socket, name: str) -> None:
    """It is one that clients can come to."""
    if sock.family not in _LISTENABLE or sock.type != socket.SOCK_STREAM:
        raise StartError(f"{name} is not a TCP or Unix stream socket", _BOUND)
    if _is_unbound(sock):
        raise StartError(f"{name} is a socket without an address", _BOUND)


def _listening(sock: socket.socket, name: str, backlog: int) -> Bound:
    """One that somebody else made, once it listens."""
    try:
        _insist_on_clients(sock, name)
        sock.listen(backlog)
        sock.setblocking(False)
        sock.set_inheritable(False)
    except OSError as problem:
        raise StartError(f"{name} cannot listen: {problem.strerror}", _BOUND) from None
    kind = Kind.UNIX if sock.family == socket.AF_UNIX else Kind.TCP
    return Bound(socket=sock, kind=kind, label=_label(sock), inherited=True)


def _is_unbound(sock: socket.socket) -> bool:
    name = sock.getsockname()
    return not name if sock.family == socket.AF_UNIX else name[1] == 0


def _label(sock: socket.socket) -> str:
    name = sock.getsockname()
    if sock.family == socket.AF_UNIX:
        # The name of an abstract socket comes as bytes, with a zero in front; `@` is how tools show that.
        path = "@" + name[1:].decode(errors="replace") if isinstance(name, bytes) else name
        return f"unix socket {path}"
    return f"http://{TcpAddress(host=name[0], port=name[1])}"


def _refusal(address: TcpAddress | UnixAddress, problem: OSError) -> StartError:
    """What the system said, and what to do about it."""
    tcp = isinstance(address, TcpAddress)
    host = address.host.lower() if isinstance(address, TcpAddress) else ""
    reason, hint = f"cannot be listened on: {problem.strerror or problem}", ""
    match problem.errno:
        case errno.EADDRINUSE:
            other = "choose another path"
            if isinstance(address, TcpAddress):
                other = f"choose another port with {address.option} (0 takes a free one)"
            reason, hint = "is already in use", f"stop the server that listens there, or {other}"
        case errno.EADDRNOTAVAIL:
            reason, hint = "is not an address of this machine", "use 127.0.0.1, or 0.0.0.0 for all"
        case errno.EACCES | errno.EPERM if tcp:
            reason, hint = "needs privileges", "use a port from 1024 up, behind a proxy or a port mapping"
        case errno.EACCES | errno.EPERM:
            reason, hint = "may not be created", "choose a directory that this user may write to"
        case errno.ENOENT | errno.ENOTDIR:
            reason, hint = "is in a directory that does not exist", "create the directory first"
        case errno.EINVAL if host.startswith("fe80:") and "%" not in host:
            hint = f"say of which interface it is: `{host}%eth0`"
        case errno.EINVAL if host.startswith("::ffff:"):
            hint = f"write the IPv4 address: `{host.removeprefix('::ffff:')}`"
        case None:  # raised by Python itself
            reason, hint = (
                f"cannot be listened on: {problem}",
                "the system allows 107 bytes: shorten the path",
            )
    return StartError(f"{address} {reason}", hint)
