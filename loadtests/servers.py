"""The servers: how each is started, what it costs, how it is stopped meanwhile and ended.

Not what they are asked (`workloads.py`).

Invariant: whatever was started is ended, all of its processes, and only one server runs at a time.
"""

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from workloads import H2, H2C, HTTP, HTTPS, WS

FOLDER = Path(__file__).resolve().parent
START_SECONDS = 20.0
# Of `cargo build --profile bench -p bridgehead-load --example bare`.
BARE = FOLDER.parent / "target" / "release" / "examples" / "bare"
HYPER, NGINX = "hyper alone", "nginx"
OURS = ["-m", "bridgehead", "{app}", "--port={port}", "--log-level=warning", "--no-access-log"]
UVICORN = [
    "-m",
    "uvicorn",
    "{app}",
    "--port={port}",
    "--log-level=warning",
    "--no-access-log",
    "--loop=uvloop",
    "--timeout-keep-alive=75",
]
# The words after `python`. One worker each and no access log; the loop is uvloop where there is a choice.
# Idle connections are kept for as long as by us: gunicorn would close them after 2 s, uvicorn and hypercorn
# after 5.
COMMANDS: dict[str, list[str]] = {
    "bridgehead": OURS,
    "bridgehead again": OURS,
    # By default a thousand requests run at once, a thousand wait, and more are told so.
    "bridgehead unlimited": [*OURS, "--limit-concurrency=0", "--limit-connections=0"],
    "uvicorn": [*UVICORN, "--http=httptools"],
    "uvicorn zttp": [*UVICORN, "--http=zttp"],
    # Its bound for requests counts connections, and is 1024 unless told: the rest would wait outside.
    "granian": [
        *("-m", "granian", "{app}", "--port={port}", "--log-level=warning", "--interface=asgi"),
        "--backpressure=4096",
    ],
    "hypercorn": [
        *("-m", "hypercorn"),
        "--bind=127.0.0.1:{port}",
        "--worker-class=uvloop",
        "--keep-alive=75",
        "--log-level=warning",
        "{app}",
    ],
    "gunicorn": [
        *("-m", "gunicorn", "--worker-class=asgi", "--workers=1", "--asgi-loop=uvloop"),
        *("--bind=127.0.0.1:{port}", "--keep-alive=75", "--log-level=warning", "{app}"),
    ],
    # Without a module that runs.
    "fastpysgi": ["-c", "from fastpysgi import run_from_cli as run; run()", "{app}", "-p{port}", "-l2"],
    "socketify": ["-m", "socketify", "{app}", "--port", "{port}", "--disable-listen-log", "true"],
}
CONTROL = "bridgehead again"
PEERS = [name for name in COMMANDS if not name.startswith("bridgehead")]
RUNTIMES = {
    f"bridgehead {runtime} {loop}": [*OURS, f"--runtime={runtime}", f"--loop={loop}"]
    for runtime in ("fused", "threaded")
    for loop in ("asyncio", "uvloop")
}
# What a feature of ours adds, beside `bridgehead` (`variants.py`). Access lines go to a file.
LOGGING = "bridgehead, access log"
VARIANTS = {
    LOGGING: [*(word for word in OURS if word not in ("--no-access-log", "--log-level=warning"))],
    "bridgehead, two workers": [*OURS, "--workers=2"],
    "bridgehead, --admin": [*OURS, "--admin=127.0.0.1:0"],
    "bridgehead, --slow-step 0": [*OURS, "--slow-step=0"],
    "bridgehead, --limit-concurrency auto": [*OURS, "--limit-concurrency=auto"],
}
_NGINX = """
daemon off; worker_processes 1; pid {folder}/pid; error_log stderr;
events {{ worker_connections 4096; }}
http {{
    access_log off; sendfile on; tcp_nodelay on; keepalive_requests 1000000000;
    client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
    uwsgi_temp_path {folder}; scgi_temp_path {folder};
    server {{
        listen 127.0.0.1:{port} backlog=4096; root {folder};
        location = / {{ default_type text/plain; return 200 hello; }}
    }}
}}
"""


# Everybody's, and so nobody's: of an elliptic curve, as most sites have it.
_FILES = FOLDER.parent / "tests" / "tls" / "files"
CERTIFICATE, KEY = _FILES / "server.pem", _FILES / "server.key"
_UVICORNS = [f"--ssl-certfile={CERTIFICATE}", f"--ssl-keyfile={KEY}"]
_SHORT = [f"--certfile={CERTIFICATE}", f"--keyfile={KEY}"]
_GRANIANS = [f"--ssl-certificate={CERTIFICATE}", f"--ssl-keyfile={KEY}"]
# Who speaks what, and the words that are needed for it. HTTP/1.1 in the clear is everybody's.
SPEAKERS: dict[str, dict[str, list[str]]] = {
    HTTPS: {
        "uvicorn": _UVICORNS,
        "uvicorn zttp": _UVICORNS,
        "granian": _GRANIANS,
        "hypercorn": _SHORT,
        "gunicorn": _SHORT,
        "fastpysgi": _SHORT,
    },
    H2: {"granian": _GRANIANS, "hypercorn": _SHORT, "gunicorn": [*_SHORT, "--http-protocols=h2,h1"]},
    H2C: {"granian": [], "hypercorn": []},
    WS: {name: [] for name in ("uvicorn", "uvicorn zttp", "granian", "hypercorn", "gunicorn", "socketify")},
}


def speaks(name: str, what: str) -> bool:
    """Whether this server is asked by that."""
    if what == HTTP or name == HYPER or name.startswith("bridgehead"):
        return True
    return name in SPEAKERS[what]


@dataclass(slots=True)
class Server:
    """A running server: the root of its process tree, and where it listens."""

    name: str
    process: subprocess.Popen[bytes]
    port: int
    began: float = field(default_factory=time.monotonic)

    def death(self, patience: float = 0.0) -> str:
        """How it has ended, or does within so many seconds; nothing while it runs."""
        try:
            code = self.process.wait(patience)
        except subprocess.TimeoutExpired:
            return ""
        return f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"

    def tree(self) -> list[int]:
        """Its processes, parents first; none once it has ended, for its number may be another's."""
        if self.death():
            return []
        found = [self.process.pid]
        for parent in found:
            for children in Path(f"/proc/{parent}/task").glob("*/children"):
                with suppress(OSError):
                    found += map(int, children.read_text().split())
        return found

    def signal(self, number: signal.Signals) -> None:
        """Sends it to each of them."""
        for process in self.tree():
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def cpu(self) -> int:
        """Nanoseconds that its threads have been on a core so far."""
        total = 0
        for process in self.tree():
            for thread in Path(f"/proc/{process}/task").glob("*/schedstat"):
                with suppress(OSError):
                    total += int(thread.read_text().split()[0])
        return total

    def memory(self) -> float:
        """MiB that its processes have resident, each counted whole."""
        pages = 0
        for process in self.tree():
            with suppress(OSError):
                pages += int(Path(f"/proc/{process}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def available(names: list[str]) -> list[str]:
    """Those that are installed."""
    return [name for name in names if all(map(importlib.util.find_spec, packages_of(name)))]


def packages_of(name: str) -> list[str]:
    """What has to be installed for it."""
    return ["bridgehead"] if name.startswith("bridgehead") else name.split()


@contextmanager
def started(name: str, app: str, core: int, what: str = HTTP) -> Iterator[Server]:
    """A server on one core, stopped by SIGSTOP until it is measured."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = command_of(name, app, port, Path(folder), what)
        on_core = ["taskset", "--cpu-list", str(core), *command]
        # A file, for nobody reads a pipe meanwhile.
        said, lines = Path(folder) / "stderr", Path(folder) / "stdout"
        with said.open("wb") as stderr, lines.open("wb") as stdout:
            process = subprocess.Popen(on_core, cwd=FOLDER, stdout=stdout, stderr=stderr)
        server = Server(name, process, port)
        try:
            await_listening(process, port, said)
            server.signal(signal.SIGSTOP)
            yield server
        finally:
            end(server)


def command_of(name: str, app: str, port: int, folder: Path, what: str = HTTP) -> list[str]:
    """What starts it."""
    if name == HYPER:
        words = {H2C: ["h2c"], HTTPS: [str(CERTIFICATE), str(KEY)], H2: [str(CERTIFICATE), str(KEY)]}
        return [str(BARE), str(port), *words.get(what, [])]
    if name == NGINX:
        (folder / "10k").write_bytes(b"x" * 10_240)
        (folder / "1m").write_bytes(b"x" * 1_048_576)
        (folder / "conf").write_text(_NGINX.format(folder=folder, port=port))
        # Its workers have another user's rights when root has started it.
        folder.chmod(0o755)
        return [nginx(), "-e", "stderr", "-p", str(folder), "-c", str(folder / "conf")]
    words = [each.format(app=app, port=port) for each in (COMMANDS | RUNTIMES | VARIANTS)[name]]
    if name.startswith("bridgehead"):
        more = _UVICORNS if what in (HTTPS, H2) else []
    else:
        more = SPEAKERS[what][name] if what in SPEAKERS else []
    return [sys.executable, *words, *more]


def nginx() -> str:
    """Where it is; nothing, if it is not."""
    return os.environ.get("NGINX") or shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin") or ""


def free_port() -> int:
    """One that nobody has at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def await_listening(process: subprocess.Popen[bytes], port: int, said: Path) -> None:
    """Until it takes a connection; one that does not is an error that says what it said."""
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.005)
    process.kill()
    raise RuntimeError(f"did not start: {said.read_text(errors='replace').strip()[-300:]}")


def end(server: Server) -> None:
    """All of its processes."""
    left = server.tree()
    try:
        server.signal(signal.SIGCONT)
        server.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            server.process.wait(2)
    finally:
        for each in left:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        server.process.wait()


@contextmanager
def upstream(core: int) -> Iterator[None]:
    """The server that `apps:asks` asks, beside the client."""
    command = ["taskset", "--cpu-list", str(core), sys.executable, FOLDER / "upstream.py"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            os.environ["UPSTREAM_PORT"] = process.stdout.readline().strip()
            yield
        finally:
            process.terminate()
