"""Words of gunicorn's and granian's that are refused, and what is written here instead.

Not those that are understood (`aliases.py`). docs/migrating.md has all of them.

Invariant: a hint names options of ours alone, and one that does what the word did.
"""

from collections.abc import Mapping
from types import MappingProxyType

_EXCLUDED = "write `--reload-exclude PATTERN`"
_METRICS = "write `--admin 127.0.0.1:9000`, which answers /metrics"
_MOUNT = "write `--static /url=DIRECTORY`"
_PROTOCOLS = "HTTP/1 and HTTP/2 are both spoken; `--no-http2` leaves the latter out"
_SYSLOG = "name a handler for it in a file for `--log-config`"

SUCCESSORS: Mapping[str, str] = MappingProxyType(
    {
        # gunicorn's
        "-D": "leave it out: let a service manager keep the process",
        "--daemon": "leave it out: let a service manager keep the process",
        "-e": "write a file of variables, for `--env-file`",
        "--env": "write a file of variables, for `--env-file`",
        "--pythonpath": "write `--app-dir DIRECTORY`, or set PYTHONPATH",
        "--access-logformat": "write `--access-log-format`, with its own names of fields",
        "--asgi-disconnect-grace-period": "`--cancel-on-disconnect` cancels a handler whose client has gone",
        "--forwarder-headers": "write `--forwarded-headers`",
        "--header-map": "write `--forwarded-headers`",
        "--http-protocols": _PROTOCOLS,
        "--http2-cleartext": _PROTOCOLS,
        "--limit-request-field_size": "write `--limit-header-bytes`, of all headers together",
        "--log-config-json": "write `--log-config FILE.json`",
        "--log-syslog": _SYSLOG,
        "--log-syslog-to": _SYSLOG,
        "--reload-extra-file": "write `--reload-include PATTERN`",
        "--statsd-host": _METRICS,
        # granian's
        "--access-log-fmt": "write `--access-log-format`, with its own names of fields",
        "--http1-header-read-timeout": "write `--timeout-header`, in seconds or with a unit",
        "--http2-keep-alive-interval": "write `--http2-ping-interval`, in seconds or with a unit",
        "--http2-keep-alive-timeout": "write `--http2-ping-timeout`, in seconds or with a unit",
        "--log": "write `--log-level LEVEL`",
        "--no-log": "write `--log-level critical --no-access-log`",
        "--metrics": _METRICS,
        "--metrics-address": _METRICS,
        "--metrics-port": _METRICS,
        "--metrics-scrape-interval": _METRICS,
        "--reload-ignore-dirs": _EXCLUDED,
        "--reload-ignore-paths": _EXCLUDED,
        "--reload-ignore-patterns": _EXCLUDED,
        "--reload-tick": "write `--reload-delay`, in seconds or with a unit",
        "--rss-sample-interval": "`--worker-max-rss SIZE` looks twice in a row",
        "--rss-samples": "`--worker-max-rss SIZE` looks twice in a row",
        "--workers-max-rss": "write `--worker-max-rss SIZE`: 500M, where granian counts mebibytes",
        "--static-path-mount": _MOUNT,
        "--static-path-route": _MOUNT,
    }
)
