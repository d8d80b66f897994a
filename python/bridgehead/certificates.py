"""What handshakes are made with: handed to Rust once, and again when its files change.

Not the reading (`crates/bridgehead-tls`), and not the options (`encryption.py`).

Invariant: files that do not fit together change nothing; what was read before is used on.
"""

import asyncio
import os
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

from bridgehead import log
from bridgehead._native import Tls, self_signed
from bridgehead.address import TcpAddress
from bridgehead.config import Config
from bridgehead.errors import StartError
from bridgehead.identity import Identity

_LOOK = 1.0  # seconds; a change is taken once it has stayed the same for so long
_LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Read by Rust."""

    identities: tuple[tuple[str, str | None], ...]
    password: str | None
    made: tuple[str, str] | None
    demand: int
    authorities: str | None
    revocations: tuple[str, ...]
    versions: tuple[str, ...]
    ciphers: str | None
    http2: bool

    @property
    def files(self) -> tuple[str, ...]:
        """What is read."""
        ours = (each for pair in self.identities for each in pair)
        return tuple(each for each in (*ours, self.authorities, *self.revocations) if each is not None)


State = list[tuple[int, int, int] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What was read, and what the files were like before."""

    tls: Tls
    files: tuple[str, ...]
    state: State


def credentials(config: Config) -> Credentials:
    """What the options ask for, read and found good. `StartError` says what is wrong."""
    certificates, keys = config.certificate_files, config.key_files
    if not certificates and not config.ssl_self_signed:
        raise StartError("--ssl-keyfile: there is no certificate to the key", "name it with --ssl-certfile")
    if config.redirect_https and not config.insecure_bind:
        raise StartError("--redirect-https: nobody comes in the clear", "let them with --insecure-bind :80")
    wanted = Wanted(
        identities=_pairs(certificates, keys),
        password=config.ssl_keyfile_password,
        made=made(config) if config.ssl_self_signed else None,
        demand=config.ssl_cert_reqs,
        authorities=config.ssl_ca_certs,
        revocations=config.ssl_crl,
        versions=_versions(config),
        ciphers=config.ssl_ciphers,
        http2=config.http2,
    )
    state = _state(wanted.files)  # first: what changes while it is read is read again
    return Credentials(tls=Tls(wanted), files=wanted.files, state=state)


def made_once(config: Config, identity: Identity | None, stack: ExitStack) -> Config:
    """The same certificate for each process: whoever has told a browser to take it need not do so again.

    It is theirs whom the processes run as; None: whoever runs this.
    """
    from tempfile import TemporaryDirectory

    folder = stack.enter_context(TemporaryDirectory(prefix="bridgehead-"))
    path = os.path.join(folder, "development.pem")
    with open(path, "w", encoding="ascii") as file:  # the folder is theirs alone
        file.writelines(made(config))
    if identity is not None:
        for each in (path, folder):
            os.chown(each, identity.user, identity.group)
    certificates = (*config.certificate_files, path)
    keys = (*config.key_files, path) if config.ssl_keyfile else None
    return replace(config, ssl_self_signed=False, ssl_certfile=certificates, ssl_keyfile=keys)


def _pairs(certificates: tuple[str, ...], keys: tuple[str, ...]) -> tuple[tuple[str, str | None], ...]:
    if not keys:
        return tuple((each, None) for each in certificates)
    if len(keys) != len(certificates):
        counts = f"{len(certificates)} certificates and {len(keys)} keys"
        raise StartError(
            f"--ssl-keyfile: there are {counts}",
            "give a key for each certificate, in the same order, or none if they are in one file",
        )
    return tuple(zip(certificates, keys, strict=True))


def _versions(config: Config) -> tuple[str, ...]:
    spoken = ("1.2",) if config.ssl_version == 5 else ("1.2", "1.3")
    versions = tuple(each for each in spoken if each >= config.ssl_min_version)
    if not versions:
        raise StartError(
            "--ssl-version 5 is TLS 1.2 alone, and --ssl-min-version asks for more", "leave one of them out"
        )
    return versions


def made(config: Config) -> tuple[str, str]:
    """A certificate and its key for development, in PEM."""
    hosts = {each.host for each in config.addresses() if isinstance(each, TcpAddress)}
    return self_signed(list(dict.fromkeys((*_LOCAL, *sorted(hosts - {"", "0.0.0.0", "::"})))))


class Keeper:
    """Has the files read again when they change, or when it is told."""

    def __init__(self, loaded: Credentials) -> None:
        self._loaded = loaded
        self._told = asyncio.Event()
        self._task = asyncio.create_task(self._keep())

    def hurry(self) -> None:
        """Read them again, whether they have changed or not."""
        self._told.set()

    def abandon(self) -> None:
        """Look no more, and wait for nothing."""
        self._task.cancel()

    async def stop(self) -> None:
        """Look no more."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _keep(self) -> None:
        read = seen = self._loaded.state
        while True:
            told = await self._is_told()
            before, seen = seen, _state(self._loaded.files)
            # Who replaces two files does so one after the other.
            if told or (seen != read and seen == before):
                read = seen
                await self._reload()

    async def _is_told(self) -> bool:
        with suppress(TimeoutError):
            # What was made by us has no files.
            async with asyncio.timeout(_LOOK if self._loaded.files else None):
                await self._told.wait()
        told = self._told.is_set()
        self._told.clear()
        return told

    async def _reload(self) -> None:
        try:
            # A key's password may take a while to check.
            await asyncio.to_thread(self._loaded.tls.reload)
        except StartError as problem:
            log.certificates_refused(problem)
        else:
            log.certificates_read()


def _state(files: Iterable[str]) -> State:
    return [_state_of(each) for each in files]


def _state_of(file: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
