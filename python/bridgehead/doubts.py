"""What was set and does nothing, or hardly what was meant: a sentence for each, to be told as a warning.

Not mistakes: those are a `StartError`. Not variables that set nothing (`sources.py`).

Invariant: nothing is changed here; what is warned of is served as it was set.
"""

import os
import sys
from collections.abc import Iterator

from bridgehead.config import OPTIONS
from bridgehead.forwarded import misread
from bridgehead.patience import longest_delay
from bridgehead.sources import Given, Resolved
from bridgehead.static_options import url_and_place
from bridgehead.uvicorn_options import without_effect

_TLS = ("ssl_keyfile_password", "ssl_min_version", "ssl_version", "ssl_ciphers")
_LIFETIMES = ("limit_max_requests", "worker_lifetime", "worker_max_rss", "control_socket")
_JITTERS = (
    ("limit_max_requests_jitter", "limit_max_requests"),
    ("worker_lifetime_jitter", "worker_lifetime"),
)
_OF_FILES = ("static_max_age", "limit_static")
_OF_COMPRESSION = ("compress_types", "compress_min_size")
_RELOADING = ("reload_dirs", "reload_includes", "reload_excludes", "reload_delay", "reload_poll")


def doubts(settings: Resolved) -> Iterator[str]:
    """The sentences."""
    yield from _passed_over(settings)
    yield from _without_reload(settings)
    yield from _without_tls(settings)
    yield from _trusted_by_nothing(settings)
    yield from _from_no_proxy(settings)
    yield from _delayed_too_long(settings)
    yield from _limits_in_vain(settings)
    yield from _without_files(settings)
    yield from _without_compression(settings)
    yield from _unwritten(settings)
    yield from _cut_by_the_kernel(settings)
    yield from without_effect(settings.config.http, settings.config.ws)
    root_path = settings.config.root_path
    if root_path and not (root_path.startswith("/") and not root_path.endswith("/")):
        meant = root_path.strip("/")
        hint = f"Did you mean '/{meant}'?" if meant else "Leave it out."
        yield f"--root-path {root_path!r} goes before each path as it is: {root_path + '/items'!r}. {hint}"


def _passed_over(settings: Resolved) -> Iterator[str]:
    """As in uvicorn, `uds` and `fd` are heard before `host` and `port`."""
    origins = settings.origins
    heard = next((origins[name] for name in ("uds", "fd") if name in origins), None)
    for name in ("host", "port"):
        if heard is not None and name in origins:
            yield f"{origins[name].source} is passed over, since {heard.source} says where to listen."


def _trusted_by_nothing(settings: Resolved) -> Iterator[str]:
    """uvicorn says nothing of these, and takes the proxy for the client."""
    for name in ("forwarded_allow_ips", "proxy_protocol_allow_ips"):
        given = settings.origins.get(name)
        sentence = misread(getattr(settings.config, name) or "") if given is not None else None
        if given is not None and sentence is not None:
            yield f"{given.source}: {sentence}"


def _from_no_proxy(settings: Resolved) -> Iterator[str]:
    given = _said(settings, "proxy_protocol_allow_ips")
    if given is not None and not settings.config.proxy_protocol:
        yield f"{given.source} does nothing without --proxy-protocol."
    given = _said(settings, "forwarded_headers")
    if given is not None and not settings.config.proxy_headers:
        yield f"{given.source} does nothing with --no-proxy-headers."


def _delayed_too_long(settings: Resolved) -> Iterator[str]:
    given, longest = settings.origins.get("drain_delay"), longest_delay(settings.config)
    if given is not None and (settings.config.drain_delay or 0.0) > longest:
        yield f"{given.source} is cut to {longest:g} s, half of --timeout-graceful-shutdown."


def _cut_by_the_kernel(settings: Resolved) -> Iterator[str]:
    """Linux says nothing when it makes a backlog shorter."""
    from bridgehead.sockets import longest_backlog  # who asks for the version needs none of it

    given, longest = settings.origins.get("backlog"), longest_backlog()
    if given is not None and longest is not None and settings.config.backlog > longest:
        yield f"{given.source} is cut to {longest} by the kernel, which net.core.somaxconn decides."


def _limits_in_vain(settings: Resolved) -> Iterator[str]:
    """A chance to be added to nothing, a memory that nobody knows, and processes that a save ends anyway."""
    config, origins = settings.config, settings.origins
    for name, of in _JITTERS:
        if name in origins and getattr(config, name) and not getattr(config, of):
            yield f"{origins[name].source} does nothing without --{of.replace('_', '-')}."
    if "worker_max_rss" in origins and config.worker_max_rss and sys.platform != "linux":
        yield f"{origins['worker_max_rss'].source} does nothing: no process's memory is known here."
    if config.reload:
        for name in _LIFETIMES:
            if name in origins and getattr(config, name):
                yield f"{origins[name].source} does nothing with --reload."


def _without_files(settings: Resolved) -> Iterator[str]:
    """Words about files that nobody serves, and a page that is not there for those that are not."""
    config = settings.config
    folders = dict(map(url_and_place, config.static))
    if not any(folders.values()):
        for name in _OF_FILES:
            if (given := _said(settings, name)) is not None:
                yield f"{given.source} does nothing without --static."
    for url, file in map(url_and_place, config.static_fallback):
        folder = folders.get(url)
        # A directory that is not there ends the start.
        if folder and os.path.isdir(folder) and not os.path.isfile(os.path.join(folder, file)):
            source = settings.origins["static_fallback"].source
            yield f"{source}: there is no {file!r} in {folder!r}; until there is, nothing stands for a page."


def _without_compression(settings: Resolved) -> Iterator[str]:
    if settings.config.compress or "compress" in settings.origins:
        return
    for name in _OF_COMPRESSION:
        if (given := _said(settings, name)) is not None:
            yield f"{given.source} does nothing without --compress."


def _unwritten(settings: Resolved) -> Iterator[str]:
    """Words about lines that nobody writes, or that others write."""
    config = settings.config
    form = _said(settings, "access_log_format")
    if form is not None and not config.access_log:
        yield f"{form.source} does nothing with --no-access-log."
    elif form is not None and "{request_id}" in (config.access_log_format or "") and not config.request_id:
        yield f"{form.source}: {{request_id}} is - in every line without --request-id."
    given = _said(settings, "log_format")
    if given is not None and config.log_format != "text" and "log_config" in settings.origins:
        yield f"{given.source} does nothing with --log-config, whose formatters write the lines."


def _without_tls(settings: Resolved) -> Iterator[str]:
    """What would be an error if it asked for more than TLS itself does is one (`certificates.py`)."""
    if settings.config.is_ssl:
        yield from _unasked(settings)
        return
    for name in ("ssl_certfile", "ssl_keyfile"):
        if (given := settings.origins.get(name)) is not None:
            yield f"{given.source} is empty: clients are let in without TLS."
    for name in _TLS:
        if (given := _said(settings, name)) is not None:
            yield f"{given.source} does nothing without --ssl-certfile."


def _unasked(settings: Resolved) -> Iterator[str]:
    """Words about certificates of clients that nobody asks for, and a certificate that few are shown."""
    config, origins = settings.config, settings.origins
    for name in ("ssl_ca_certs", "ssl_crl"):
        if name in origins and getattr(config, name) and not config.ssl_cert_reqs:
            yield f"{origins[name].source} does nothing without --ssl-cert-reqs: no client is asked."
    if "ssl_self_signed" in origins and config.ssl_self_signed and config.ssl_certfile:
        source = origins["ssl_self_signed"].source.partition("/--no-")[0]
        yield f"{source} beside --ssl-certfile is shown only for names that no other has."


def _without_reload(settings: Resolved) -> Iterator[str]:
    """In a file they may wait for another start; who writes a flag means this one."""
    origins = settings.origins
    if settings.config.reload or "reload" in origins:
        return
    for name in _RELOADING:
        if name in origins and origins[name].source.startswith("--"):
            yield f"{origins[name].source} does nothing without --reload."


def _said(settings: Resolved, name: str) -> Given | None:
    """Where it was set, if something is meant by it: a printed file says what goes without saying, too."""
    given = settings.origins.get(name)
    [default] = (option.default for option in OPTIONS if option.name == name)
    is_meant = given is not None and (
        given.source.startswith("--") or getattr(settings.config, name) != default
    )
    return given if is_meant else None
