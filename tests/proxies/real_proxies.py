"""Debian's HAProxy and nginx, as processes in front of a server under test.

They are those that are installed, or that `.ci/proxies` has unpacked below target/.
Invariant: leaving the `with` block leaves no process behind, and they write into their own folder alone.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

UNPACKED = Path(__file__).resolve().parents[2] / "target" / "tools" / "proxies"
SYSTEM = "/usr/sbin"


def program(name: str) -> str | None:
    """Where it is, if it is anywhere."""
    return shutil.which(name, path=f"{os.environ['PATH']}:{SYSTEM}:{UNPACKED}{SYSTEM}")


def environment() -> dict[str, str]:
    """For a program that may have been unpacked, and its libraries beside it."""
    libraries = [str(path) for path in (UNPACKED / "usr/lib").glob("*-linux-gnu")]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries)}


def nginx_module(name: str) -> Path | None:
    """A module that nginx loads."""
    for root in (Path("/"), UNPACKED):
        if (found := root / "usr/lib/nginx/modules" / name).exists():
            return found
    return None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        assert isinstance(port, int)
        return port


@contextmanager
def haproxy(folder: Path, configuration: str, port: int) -> Iterator[None]:
    file = folder / "haproxy.cfg"
    times = "".join(f"  timeout {each} 20s\n" for each in ("connect", "client", "server"))
    head = f"global\n  log stderr local0\ndefaults\n{times}"
    file.write_text(head + configuration)
    path = program("haproxy")
    assert path is not None
    with _running([path, "-db", "-f", str(file)], folder, port):
        yield


def nginx_paths(folder: Path) -> str:
    """Where nginx keeps bodies, for `http`: the places that it was built with come with its installation."""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    return "".join(f"  {kind}_temp_path {folder}/{kind};\n" for kind in kinds)


@contextmanager
def nginx(folder: Path, configuration: str, port: int) -> Iterator[None]:
    stream = nginx_module("ngx_stream_module.so")
    load = f"load_module {stream};\n" if stream is not None else ""
    file = folder / "nginx.conf"
    file.write_text(
        f"{load}daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log stderr;\nevents {{}}\n"
        + configuration.replace("http {\n", f"http {{\n  access_log off;\n{nginx_paths(folder)}")
    )
    path = program("nginx")
    assert path is not None
    with _running([path, "-e", "stderr", "-p", str(folder), "-c", str(file)], folder, port):
        yield


@contextmanager
def _running(command: list[str], folder: Path, port: int) -> Iterator[None]:
    with (
        open(folder / "said", "wb") as said,
        subprocess.Popen(command, env=environment(), stdout=said, stderr=subprocess.STDOUT) as process,
    ):
        try:
            _wait_for(port, process, folder)
            yield
        finally:
            process.terminate()
            process.wait(10)


def _wait_for(port: int, process: subprocess.Popen[bytes], folder: Path) -> None:
    until = time.monotonic() + 15
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            said = (folder / "said").read_text(errors="replace")
            assert process.poll() is None, said
            assert time.monotonic() < until, said
            time.sleep(0.02)
