"""What proxies in front may say, and who may say it: options, as a part of `Config`.

Not how the words are read (`forwarded.py`), nor what they come to, which is Rust's.
"""

from dataclasses import dataclass

from bridgehead import forwarded
from bridgehead.forwarded import read as read_trusted
from bridgehead.options import Shape, option, switch
from bridgehead.processes import Processes

_NEW = "new: uvicorn has no such option"


@dataclass(slots=True, kw_only=True, init=False, repr=False, eq=False)  # `Config` has these
class ProxyOptions(Processes):
    """Whose word is taken for who a client is, and in which form."""

    proxy_headers: bool = option(
        True,
        read=switch,
        shape=Shape.SWITCH,
        group="Proxies",
        help="take what trusted proxies say of their clients in headers; see docs/proxies.md",
    )
    forwarded_allow_ips: str | None = option(
        None,
        read=read_trusted,
        metavar="ADDRESSES",
        unset=forwarded.USUAL,
        also=forwarded.VARIABLE,
        group="Proxies",
        help="trust these: addresses and networks with commas between them, unix, or * for everybody",
    )
    forwarded_headers: str = option(
        "for,proto",
        read=forwarded.headers_taken,
        metavar="WORDS",
        group="Proxies",
        help="the headers taken: for, proto, host, port, prefix (X-Forwarded-…), or forwarded (RFC 7239)",
        differs="new: uvicorn takes these two. A proxy passes on those that it does not write itself",
    )
    proxy_protocol: bool = option(
        False,
        read=switch,
        shape=Shape.SWITCH,
        group="Proxies",
        help="each connection begins with a PROXY header, version 1 or 2, or is closed",
        differs=_NEW,
    )
    proxy_protocol_allow_ips: str = option(
        "127.0.0.1,::1,unix",
        read=lambda value: read_trusted(value) or "",
        metavar="ADDRESSES",
        group="Proxies",
        help="who may connect with --proxy-protocol, in the words of --forwarded-allow-ips",
        differs=_NEW,
    )
