"""Words that gunicorn's and granian's users have in their command lines, as ours.

Not the options (`config.py`): an alias is written out before anything is read.

Invariant: a word that we have ourselves is never an alias, and what has no meaning here is told by name.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from bridgehead.errors import StartError

# Theirs, and ours with the same meaning and the same kind of value.
GUNICORNS: Mapping[str, str] = MappingProxyType(
    {
        "-b": "--bind",
        "-c": "--config",
        "-w": "--workers",
        "-t": "--timeout-worker-healthcheck",
        "--timeout": "--timeout-worker-healthcheck",
        "--graceful-timeout": "--timeout-graceful-shutdown",
        "--keep-alive": "--timeout-keep-alive",
        "--max-requests": "--limit-max-requests",
        "--max-requests-jitter": "--limit-max-requests-jitter",
        "--proxy-allow-from": "--proxy-protocol-allow-ips",
        "--limit-request-line": "--limit-target",
        "--limit-request-fields": "--limit-headers",
        "--chdir": "--app-dir",
        "--check-config": "--check",
        "-p": "--pidfile",
        "--pid": "--pidfile",
        "-u": "--user",
        "-g": "--group",
        "-m": "--umask",
        "--certfile": "--ssl-certfile",
        "--keyfile": "--ssl-keyfile",
        "--ca-certs": "--ssl-ca-certs",
        "--cert-reqs": "--ssl-cert-reqs",
        "--ciphers": "--ssl-ciphers",
        "--asgi-loop": "--loop",
        "--asgi-lifespan": "--lifespan",
        "--websocket-max-message-size": "--ws-max-size",
    }
)
GRANIANS: Mapping[str, str] = MappingProxyType(
    {
        "--backpressure": "--limit-concurrency",
        "--ssl-certificate": "--ssl-certfile",
        "--ssl-ca": "--ssl-ca-certs",
        "--ssl-protocol-min": "--ssl-min-version",
        "--url-path-prefix": "--root-path",
        "--working-dir": "--app-dir",
        "--env-files": "--env-file",
        "--pid-file": "--pidfile",
        "--workers-lifetime": "--worker-lifetime",
        "--workers-kill-timeout": "--timeout-graceful-shutdown",
        "--reload-paths": "--reload-dir",
        "--static-path-expires": "--static-max-age",
    }
)
ALIASES: Mapping[str, str] = MappingProxyType({**GUNICORNS, **GRANIANS})
# Values of granian's, in a word that is ours as well.
VALUES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "--interface": {"asgi": "asgi3"},
        "--ssl-min-version": {"tls1.2": "1.2", "tls1.3": "1.3"},
    }
)
# Switches of granian's that are values here.
SWITCHES: Mapping[str, str] = MappingProxyType(
    {
        "--no-ws": "--ws=none",
        "--ssl-client-verify": "--ssl-cert-reqs=2",
        "--no-ssl-client-verify": "--ssl-cert-reqs=0",
    }
)
# gunicorn's words for the files of its logs, and where those lines go here, which it calls `-`.
LOGS: Mapping[str, str] = MappingProxyType(
    {
        "--access-logfile": "stdout",
        "--error-logfile": "stderr",
        "--log-file": "stderr",
    }
)
# What a word that nobody knows may have been meant for, besides ours.
NEAR_NAMES = tuple(word for words in (ALIASES, SWITCHES, LOGS) for word in words if word.startswith("--"))

# Theirs, with a value each, and why there is nothing to set.
MEANINGLESS: Mapping[str, str] = MappingProxyType(
    {
        "-k": "there is one kind of worker",
        "--worker-class": "there is one kind of worker",
        "-n": "a process has the title that Python gives it",
        "--name": "a process has the title that Python gives it",
        "--process-name": "a process has the title that Python gives it",
        "--threads": "the application runs on one loop in each worker",
        "--worker-connections": "--limit-connections and --limit-concurrency bound a worker",
        "--worker-tmp-dir": "workers tell that they live in memory that they share",
        "--reload-engine": "the system tells of changes; --reload-poll looks for them",
        "--runtime-mode": "one thread drives the network of a worker",
        "--runtime-threads": "one thread drives the network of a worker",
        "--runtime-blocking-threads": "one thread drives the network of a worker",
        "--blocking-threads": "the application runs on one loop in each worker",
        "--blocking-threads-idle-timeout": "the application runs on one loop in each worker",
        "--static-path-dir-to-file": "the index.html of a directory is always taken",
        "--respawn-interval": "a worker that dies is replaced at once, and later if it goes on dying",
    }
)
# The same without a value.
MEANINGLESS_SWITCHES: Mapping[str, str] = MappingProxyType(
    {
        "--preload": "each worker imports the application by itself",
        "-R": "nothing that the application prints is held back",
        "--enable-stdio-inheritance": "nothing that the application prints is held back",
        "--capture-output": "what the application prints goes where the log goes already",
        "--no-sendfile": "bodies leave by Rust",
        "--reuse-port": "each worker has a socket of its own already",
        "--respawn-failed-workers": "a worker that dies is always replaced",
        "--no-respawn-failed-workers": "a worker that dies is always replaced",
        "--reload-ignore-worker-failure": "what does not start is started again when a file is saved",
        "--no-reload-ignore-worker-failure": "what does not start is started again when a file is saved",
        "--no-factory": "a target is called only if that is asked for",
        "--no-metrics": "nothing is measured for others without --admin",
    }
)


def written_out(words: Sequence[str], known: frozenset[str]) -> tuple[list[str], list[str]]:
    """The words with ours for theirs, and a sentence for each that was left out. `known` are our own."""
    _refuse_ports(words)
    ours: list[str] = []
    left_out: list[str] = []
    rest = iter(words)
    for word in rest:
        flag, equals, value = word.partition("=")
        if flag not in known and ALIASES.get(flag) in known:
            flag = ALIASES[flag]
        if flag in VALUES or (flag in LOGS and flag not in known):
            ours.extend(_by_value(flag, value if equals else next(rest, None)))
        elif flag in known or not flag.startswith("-"):
            ours.append(f"{flag}{equals}{value}")
        elif flag in SWITCHES:
            ours.append(SWITCHES[flag])
        elif flag in MEANINGLESS or flag in MEANINGLESS_SWITCHES:
            left_out.append(_sentence(flag))
            if flag in MEANINGLESS and not equals:
                next(rest, None)
        else:
            ours.extend(_joined(word, known))
    return ours, left_out


def _refuse_ports(words: Sequence[str]) -> None:
    """`-p` is gunicorn's word for a file, and others' for the port: nobody means a file `3000`."""
    for word, after in pairwise([*words, ""]):
        value = after if word == "-p" else word.removeprefix("-p").removeprefix("=")
        if word.startswith("-p") and value.isdecimal():
            raise StartError(
                f"-p: {value!r} is no pidfile, which gunicorn's -p names", f"write --port {value}"
            )


def _by_value(flag: str, value: str | None) -> Iterator[str]:
    """A word whose value decides; `None` if the command line ends with it."""
    if value is None:
        yield flag
    elif flag in VALUES:
        yield f"{flag}={VALUES[flag].get(value, value)}"
    elif value != "-":
        raise StartError(
            f"{flag}: there is no option for a file of the log",
            f"it goes to {LOGS[flag]}: redirect that, or name handlers in a file for --log-config",
        )


def _joined(word: str, known: frozenset[str]) -> Iterator[str]:
    """`-w4` and `-b:80`, as short words may be written."""
    flag = ALIASES.get(word[:2], "") if not word.startswith("--") else ""
    if flag in known:
        yield f"{flag}={word[2:]}"
    else:
        yield word


def _sentence(flag: str) -> str:
    reason = MEANINGLESS.get(flag) or MEANINGLESS_SWITCHES[flag]
    return f"{flag} changes nothing here: {reason}."
