"""Whose word is taken for who a client is, and in which headers; the list of those as uvicorn reads it.

Not what proxies say: that is looked at in Rust (`forwarded.rs`).

Invariant: nobody is trusted by a word that names no address and no network.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bridgehead.errors import StartError, did_you_mean

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

VARIABLE = "FORWARDED_ALLOW_IPS"
USUAL = "127.0.0.1,::1"
# By which a proxy says something in a header: `X-Forwarded-For` and so on, and the standard's one for all.
HEADERS = ("for", "proto", "host", "port", "prefix", "forwarded")
# What stands in lists where an address is not told, and is meant as it is; RFC 7239, section 6.
_NAMES = frozenset({"", "unix", "unix:", "unknown"})
_HIDDEN = "_"
_OF_ADDRESSES = frozenset("0123456789abcdefABCDEF.:[]")
_IN_STANDARD = frozenset({"for", "proto", "host"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Trusted:
    """Who may name another client; read by Rust. `names` stand in lists of addresses, and are none."""

    everybody: bool = False
    addresses: tuple[str, ...] = ()
    networks: tuple[tuple[str, int], ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Forwarding:
    """Who may name another client, and in which headers; read by Rust."""

    proxies: Trusted
    headers: frozenset[str]


def headers_taken(value: object) -> str:
    """An option's reader: some of `HEADERS`, with commas between them."""
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, Iterable):
        raise StartError(f"{value!r} does not name headers", f"write some of {','.join(HEADERS)}")
    words = [str(word).strip().lower() for word in given]
    for word in words:
        if word not in HEADERS:
            raise StartError(f"{word!r} is not one of {', '.join(HEADERS)}", did_you_mean(word, HEADERS))
    both = sorted(_IN_STANDARD.intersection(words)) if "forwarded" in words else []
    if both:
        names = " and ".join(f"X-Forwarded-{word.capitalize()}" for word in both)
        raise StartError(
            f"Forwarded and {names} say the same", "take what your proxy writes, and not the other"
        )
    return ",".join(dict.fromkeys(words))


def read(value: object) -> str | None:
    """An option's reader: addresses and networks with commas between them, or a list of those."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Iterable):
        words = list(value)
        if all(isinstance(each, str) for each in words):
            return ",".join(words)
    hint = "write addresses and networks with commas between them, or *"
    raise StartError(f"{value!r} does not say whom to trust", hint)


def trusted(words: str | None, environ: Mapping[str, str] = os.environ) -> Trusted:
    """Whom these words name. As in uvicorn, None looks at the environment, where nothing is nobody."""
    if words is None:
        words = environ.get(VARIABLE, USUAL)
    if words == "*":
        return Trusted(everybody=True)
    addresses, networks, names = [], [], []
    for word in filter(None, (each.strip() for each in words.split(","))):
        named = _named(word)
        if named is None or "%" in word:  # an address of one link is compared as it is written
            names.append(word)
        elif "/" in word:
            base, _, prefix = named.compressed.partition("/")
            networks.append((base, int(prefix)))
        else:
            addresses.append(named.compressed)
    return Trusted(addresses=tuple(addresses), networks=tuple(networks), names=tuple(names))


def misread(words: str) -> str | None:
    """The sentence for a word by which nobody who connects is trusted, though somebody seems to be meant."""
    for word in (each.strip() for each in words.split(",") if words != "*"):
        named = _named(word)
        if named is not None and _is_mapped(named):
            return f"{word!r} is IPv4 written as IPv6, which trusts nobody who connects; write it as IPv4"
        if named is not None or word in _NAMES or word.startswith(_HIDDEN):
            continue
        if word.startswith("/"):
            return f"{word!r} trusts nobody; whoever comes by a Unix socket is trusted by the word unix"
        if "/" in word:
            import ipaddress

            try:
                meant = f"did you mean {ipaddress.ip_network(word, strict=False)}?"
            except ValueError:
                meant = "it is written as 10.0.0.0/8"
            return f"{word!r} is no network, and nobody is trusted by it; {meant}"
        if word == "*":
            return "'*' stands for everybody only by itself; beside others nobody is trusted by it"
        if set(word) <= _OF_ADDRESSES:
            return f"{word!r} is no address, and nobody is trusted by it"
        return f"{word!r} is no address, and names are not looked up: nobody who connects is trusted by it"
    return None


def _is_mapped(named: "IPv4Address | IPv6Address | IPv4Network | IPv6Network") -> bool:
    """Whether it is within ::ffff:0:0/96: a peer of IPv4 is known by its own address on every socket."""
    from ipaddress import IPv6Address, IPv6Network

    if isinstance(named, IPv6Network):
        return named.prefixlen >= 96 and named.network_address.ipv4_mapped is not None
    return isinstance(named, IPv6Address) and named.ipv4_mapped is not None


def _named(word: str) -> "IPv4Address | IPv6Address | IPv4Network | IPv6Network | None":
    import ipaddress  # costs 4 ms, and who serves needs it once

    try:
        return ipaddress.ip_network(word) if "/" in word else ipaddress.ip_address(word)
    except ValueError:
        return None
