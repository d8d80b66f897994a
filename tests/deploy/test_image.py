"""The image of `examples/deploy/docker`, without Docker: its files are there, and its commands work.

Not a build: no registry is asked for the image that it begins with.
Invariant: the words of the Dockerfile are taken from it, but for the ports.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from container import IMAGES, MANIFESTS, started
from harness import Server

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "deploy" / "docker"
DOCKERFILE = (FOLDER / "Dockerfile").read_text(encoding="utf-8")


def words_of(instruction: str) -> list[str]:
    found = re.search(rf"^\s*{instruction} (\[.*\])$", DOCKERFILE, re.M)
    assert found is not None, instruction
    words: list[str] = json.loads(found[1])
    return words


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_all_that_is_copied_is_in_the_folder_but_for_the_wheel() -> None:
    copied = [name for line in re.findall(r"^COPY (.*) \./$", DOCKERFILE, re.M) for name in line.split()]
    assert [name for name in copied if not (FOLDER / name).is_file()] == ["*.whl"]
    assert "build: .\n" in (FOLDER / "compose.yaml").read_text(encoding="utf-8")


def test_what_the_image_starts_is_healthy_and_answers() -> None:
    admin = str(free_port())
    command, target, *options = [word.replace("9000", admin) for word in words_of("ENTRYPOINT")]
    assert command == "serve"
    with Server(target, *options, cwd=FOLDER) as server:
        _, *asks = [word.replace("9000", admin) for word in words_of("CMD")]
        assert subprocess.run([sys.executable, *asks], timeout=20).returncode == 0
        assert server.ask("/").json() == {"hello": "container"}
        server.stop()
    assert subprocess.run([sys.executable, *asks], timeout=20, stderr=subprocess.DEVNULL).returncode == 1


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
@pytest.mark.parametrize("image", IMAGES)
def test_a_pod_starts_in_each_image_that_is_told_of(image: str, manifest: Path) -> None:
    admin = str(free_port())
    text = manifest.read_text(encoding="utf-8")
    command, target, *options = [word.replace("9000", admin) for word in started(text, IMAGES[image])]
    assert command == "serve"
    with Server(target, *options, cwd=FOLDER) as server:
        assert server.ask("/").json() == {"hello": "container"}
        server.stop()


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_a_pod_has_its_probes_on_the_admin_port_and_no_rights(manifest: Path) -> None:
    text = manifest.read_text(encoding="utf-8")
    assert '--admin, "0.0.0.0:9000"' in text
    assert "{name: admin, containerPort: 9000}" in text
    probes = re.findall(r"^ +(\w+)Probe:\n +httpGet: \{path: (\S+), port: (\w+)\}$", text, re.M)
    assert probes == [
        ("startup", "/livez", "admin"),
        ("liveness", "/livez", "admin"),
        ("readiness", "/readyz", "admin"),
    ]
    # The standard "restricted", by what it asks of a pod that mounts nothing.
    for due in (
        "runAsNonRoot: true",
        "seccompProfile: {type: RuntimeDefault}",
        "allowPrivilegeEscalation: false",
        "capabilities: {drop: [ALL]}",
    ):
        assert text.count(due) == 1, due


def test_an_image_names_its_user_by_number_as_run_as_non_root_needs_it() -> None:
    page = (FOLDER.parents[2] / "docs" / "deploy.md").read_text(encoding="utf-8")
    for text in (DOCKERFILE, page):
        assert re.findall(r"^USER (.+)$", text, re.M) == ["65534"]


def test_docker_waits_longer_than_the_server_takes_to_stop() -> None:
    from bridgehead import Config

    found = re.search(r"stop_grace_period: (\d+)s", (FOLDER / "compose.yaml").read_text(encoding="utf-8"))
    assert found is not None
    stop = Config("main:app").timeout_graceful_shutdown
    assert stop is not None
    assert int(found[1]) > stop
