"""Two machines behind HAProxy, nginx and Envoy are restarted one after another, and no request fails.

The proxies run with the files of `examples/deploy` as they are. Run by `make rolling`: it takes two minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hosts
import pytest
from harness import UVICORN

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "examples" / "deploy"
TOOLS = ROOT / "target" / "tools"
PATH = f"{os.environ['PATH']}:/usr/sbin:{TOOLS}/proxies/usr/sbin:{TOOLS}/envoy/envoy/_bin"
RATE = 500
ROUNDS = 2
PATIENCE = 60.0

pytestmark = [
    pytest.mark.skipif(UVICORN, reason="uvicorn has no drain delay"),
    pytest.mark.skipif(
        os.environ.get("BRIDGEHEAD_TEST_ROLLING") != "1", reason="it takes minutes: make rolling"
    ),
    pytest.mark.timeout(400),
]
APPLICATION = """
import socket

HERE = socket.gethostname().encode()


async def app(scope, receive, send):
    if scope["type"] == "http":
        await receive()
        headers = [(b"content-type", b"text/plain"), (b"content-length", b"5")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"hello"})
"""
SERVE = ["main:app", "--host", "0.0.0.0", "--admin", "0.0.0.0:9000", "--drain-delay", "5s"]


class Machine:
    """A machine that serves, again and again."""

    def __init__(self, network: hosts.Hosts, name: str, folder: Path) -> None:
        self._network, self._name, self._folder = network, name, folder
        self._times = 0
        self._start()

    def _start(self) -> None:
        self._times += 1
        self.said = self._folder / f"{self._name}-{self._times}"
        command = [sys.executable, "-m", "bridgehead", *SERVE, "--forwarded-allow-ips", hosts.EDGE]
        self._process = self._network.start(self._name, command, self.said, self._folder)
        wait_for(lambda: "running on" in self.said.read_text(), lambda: self.said.read_text())

    def answered(self) -> bool:
        """Whether it has answered any request since its last start."""
        return '"GET / HTTP/1.1" 200' in self.said.read_text()

    def restart(self) -> None:
        """As an operator does: it is told to end, ends in order, and is started again."""
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(PATIENCE) == 0, self.said.read_text()
        assert "Traceback" not in self.said.read_text()
        self._start()


def wait_for(condition: Callable[[], object], said: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, said()
        time.sleep(0.05)


def haproxy(_: Path) -> list[str]:
    return ["haproxy", "-db", "-f", str(DEPLOY / "haproxy" / "haproxy.cfg")]


def nginx(folder: Path) -> list[str]:
    # Where it may write, and that it stays in the foreground, is the machine's affair and not the file's.
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    (folder / "conf").mkdir()
    text = (DEPLOY / "nginx" / "nginx.conf").read_text()
    paths = "".join(f"    {kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    (folder / "conf" / "nginx.conf").write_text(text.replace("http {\n", f"http {{\n{paths}", 1))
    words = f"daemon off; pid {folder}/pid; error_log stderr warn;"
    return [
        "nginx",
        "-e",
        "stderr",
        "-p",
        str(folder),
        "-c",
        str(folder / "conf" / "nginx.conf"),
        "-g",
        words,
    ]


def envoy(_: Path) -> list[str]:
    return ["envoy", "-c", str(DEPLOY / "envoy" / "envoy.yaml"), "--concurrency", "1", "--log-level", "warn"]


@pytest.mark.parametrize("proxy", [haproxy, nginx, envoy], ids=lambda proxy: proxy.__name__)
def test_each_machine_is_restarted_and_no_request_fails(
    proxy: Callable[[Path], list[str]], tmp_path: Path
) -> None:
    words = proxy(tmp_path)
    program = shutil.which(words[0], path=PATH)
    assert program is not None, f"{words[0]} is not here, and .ci/proxies could not fetch it"
    assert hosts.can_be_had(), "network namespaces need root and `ip`"
    (tmp_path / "main.py").write_text(APPLICATION)
    libraries = ":".join(str(path) for path in (TOOLS / "proxies/usr/lib").glob("*-linux-gnu"))
    with hosts.Hosts() as network:
        machines = [Machine(network, name, tmp_path) for name in hosts.MACHINES]
        said = tmp_path / "proxy"
        network.start("edge", ["env", f"LD_LIBRARY_PATH={libraries}", program, *words[1:]], said, tmp_path)
        wait_for(lambda: network.ask("edge", f"http://{hosts.EDGE}/") == 200, said.read_text)
        load = start_load(network, tmp_path)
        for _ in range(ROUNDS):
            for each in machines:
                each.restart()
                # Both serve before the next one is restarted, as whoever restarts machines has it.
                wait_for(each.answered, said.read_text)
        report = end_load(load, tmp_path)
    assert report["errors"] == 0, (report["first_errors"], said.read_text()[-4000:])
    assert report["statuses"] == {"200": report["requests"]}
    assert report["requests"] > RATE * 10, report["requests"]
    print(f"{words[0]}: {report['requests']} requests, {ROUNDS * len(machines)} restarts, no error")


def start_load(network: hosts.Hosts, folder: Path) -> subprocess.Popen[bytes]:
    command = [
        *(sys.executable, "-m", "bridgehead", "load", f"http://{hosts.EDGE}/", "--rate", str(RATE)),
        *("--connections", "64", "--duration", "10m", "--json", str(folder / "report.json")),
    ]
    return network.start("edge", command, folder / "load", folder)


def end_load(load: subprocess.Popen[bytes], folder: Path) -> dict[str, Any]:
    load.send_signal(signal.SIGTERM)
    assert load.wait(PATIENCE) == 0, (folder / "load").read_text()
    report = json.loads((folder / "report.json").read_text())
    assert isinstance(report, dict)
    return report
