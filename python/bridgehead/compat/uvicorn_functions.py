"""Functions of `uvicorn.config` that programs call by themselves, for purposes of their own.

Not what the server does: TLS is `bridgehead.encryption`, and what is watched `bridgehead.watched`.

Invariant: they give what uvicorn's give for the same arguments.
"""

import ssl
from collections.abc import Sequence
from os import PathLike
from pathlib import Path


def create_ssl_context(
    certfile: str | PathLike[str],
    keyfile: str | PathLike[str] | None,
    password: str | None,
    ssl_version: int,
    cert_reqs: int,
    ca_certs: str | PathLike[str] | None,
    ciphers: str | None,
    alpn_protocols: list[str] | None = None,
) -> ssl.SSLContext:
    """A context of Python's, for a server that the program makes itself; ours takes none."""
    context = ssl.SSLContext(ssl_version)
    context.load_cert_chain(certfile, keyfile, password or None)
    context.verify_mode = ssl.VerifyMode(cert_reqs)
    if ca_certs:
        context.load_verify_locations(ca_certs)
    if ciphers:
        context.set_ciphers(ciphers)
    if alpn_protocols:
        context.set_alpn_protocols(alpn_protocols)
    return context


def is_dir(path: Path) -> bool:
    """Whether it is a folder; what cannot be looked at is none."""
    try:
        return path.absolute().is_dir()
    except OSError:
        return False


def resolve_reload_patterns(
    patterns_list: Sequence[str], directories_list: Sequence[str]
) -> tuple[list[str], list[Path]]:
    """The patterns, and the folders among them and those that they match; of nested ones the outer."""
    found = {Path(each) for each in directories_list}
    for pattern in patterns_list:
        if pattern == ".*":  # else it would be each hidden folder
            continue
        found |= {Path(pattern)} if is_dir(Path(pattern)) else set(Path.cwd().glob(pattern))
    folders = {each.resolve() for each in found if is_dir(each)}
    outer = [each for each in folders if folders.isdisjoint(each.parents)]
    return list(set(patterns_list)), outer
