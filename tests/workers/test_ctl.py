"""`bridgehead ctl`: a running server answers its own user, and nobody else."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from harness import UVICORN, Server
from harness.server import STARTUP_SECONDS
from harness.workers import imported, serve, wait_all, wait_gone, who

pytestmark = pytest.mark.skipif(UVICORN, reason="of a command that is ours")


def ctl(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bridgehead", "ctl", "--control-socket", str(path), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_who_asks_is_told_and_obeyed(tmp_path: Path) -> None:
    path = tmp_path / "control"
    with serve("--control-socket", str(path)) as server:
        wait_all(server)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        status = json.loads(ctl(path, "--json", "status").stdout)
        behind = subprocess.run(
            [sys.executable, "-m", "bridgehead", "ctl", "status", "--json", "--control-socket", str(path)],
            capture_output=True,
            timeout=60,
            check=True,
        )
        assert json.loads(behind.stdout).keys() == status.keys()
        assert (status["pid"], status["state"], status["wanted"]) == (server.pid, "serving", 2)
        assert {each["pid"] for each in status["workers"]} == set(imported(server))
        assert all(each["memory"] > 2**20 for each in status["workers"])

        assert ctl(path, "scale", "3").returncode == 0
        server.wait_line("All 3 workers are ready.", timeout=STARTUP_SECONDS)
        first = imported(server)[0]
        assert ctl(path, "stacks", str(first)).returncode == 0
        server.wait_line("most recent call first", timeout=STARTUP_SECONDS)
        assert ctl(path, "drain", str(first)).returncode == 0
        server.wait_line(f"Finished server process [{first}]", timeout=STARTUP_SECONDS)
        assert who(server) != first
        assert ctl(path, "log-level", "debug").returncode == 0
        assert ctl(path, "reload").returncode == 0
        server.wait_line("The reload is complete.", timeout=STARTUP_SECONDS)

        refused = ctl(path, "drain", "1")
        assert (refused.returncode, refused.stderr) == (1, "bridgehead: error: there is no worker 1\n")
        assert ctl(path, "scale", "0").returncode == 1
        assert f"parent {server.pid}: serving, 3 workers wanted" in ctl(path, "status").stdout
        assert ctl(path, "stop").returncode == 0
        server.assert_ended_well()
        wait_gone(imported(server))
    assert not path.exists()
    assert ctl(path, "status").returncode == 3


def test_who_waits_for_a_reload_is_told_what_became_of_it(tmp_path: Path) -> None:
    path, application = tmp_path / "control", tmp_path / "reloaded_app.py"
    application.write_text("from workers_app import app\n")
    with serve("--control-socket", str(path), workers=1, ready=False, target=str(application)) as server:
        server.wait_line("Application startup complete.", timeout=STARTUP_SECONDS)
        done = ctl(path, "reload", "--wait")
        assert (done.returncode, done.stderr) == (0, "")
        assert server.stderr.count("The reload is complete.") == 1
        application.write_text("no application")
        done = ctl(path, "reload", "--wait")
        assert done.returncode == 1
        assert done.stderr.startswith(
            "bridgehead: error: the reload has failed, and the old workers serve on"
        )
        assert json.loads(ctl(path, "--json", "status").stdout)["reload"] == "failed"
        assert len(json.loads(ctl(path, "--json", "status").stdout)["workers"]) == 1
        server.stop()


@pytest.mark.parametrize("words", [("reload",), ("reload", "--wait")])
def test_who_asks_for_a_reload_is_told_at_once_of_certificates_that_cannot_be_used(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    path, certificate, key = tmp_path / "control", tmp_path / "server.pem", tmp_path / "server.key"
    files = Path(__file__).parent.parent / "tls" / "files"
    certificate.write_bytes((files / "server.pem").read_bytes())
    key.write_bytes((files / "server.key").read_bytes())
    secured = ("--ssl-certfile", str(certificate), "--ssl-keyfile", str(key))
    with serve("--control-socket", str(path), *secured, workers=1, ready=False) as server:
        server.wait_line("Application startup complete.", timeout=STARTUP_SECONDS)
        assert ctl(path, "reload", "--wait").returncode == 0
        certificate.write_text("no certificate")
        done = ctl(path, *words)
        assert done.returncode == 1
        assert done.stderr.startswith("bridgehead: error: the certificates are used as they were read before")
        assert f"{certificate} holds no certificate" in done.stderr
        assert f"The certificates are used as they were read before: {certificate}" in server.stderr
        status = json.loads(ctl(path, "--json", "status").stdout)
        assert (status["state"], len(status["workers"])) == ("serving", 1)
        server.stop()


def test_who_says_nothing_or_nonsense_holds_up_nobody(tmp_path: Path) -> None:
    path = tmp_path / "control"
    with Server("workers_app:app", "--control-socket", str(path)) as server:
        silent = []
        for _ in range(40):
            silent.append(socket.socket(socket.AF_UNIX))
            silent[-1].connect(str(path))
        for said in (
            b"\n",
            b"[]\n",
            b"{}\n",
            b"x" * 5000,
            b"[" * 4000 + b"\n",
            b'{"do": "scale"}\n',
            b'{"do": "scale", "workers": true}\n',
            b'{"do": "stacks", "worker": []}\n',
        ):
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(STARTUP_SECONDS)
                client.connect(str(path))
                client.sendall(said)
                answer = client.makefile("rb").readline()
                assert not answer or json.loads(answer)["ok"] is False
        assert json.loads(ctl(path, "--json", "status").stdout)["wanted"] == 1
        assert who(server) in imported(server)
        assert who(server) != server.pid
        for each in silent:
            each.close()
        server.stop()


def test_a_control_socket_is_never_wider_than_its_owner(tmp_path: Path) -> None:
    from bridgehead.supervisor.desk import listen

    before = os.umask(0)
    try:
        bound = listen(str(tmp_path / "control"))
        assert stat.S_IMODE((tmp_path / "control").stat().st_mode) == 0o600
        bound.close()
        assert os.umask(0) == 0
    finally:
        os.umask(before)
