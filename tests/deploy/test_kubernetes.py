"""The manifests of `examples/deploy/kubernetes` before an apiserver, their probes by the kubelet's prober.

Run by `make kubernetes`, which builds both. The pod is a process in a network namespace; there is no cluster.
"""

from __future__ import annotations

import json
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import container
import hosts
import pytest
from harness import UVICORN

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = sorted((ROOT / "examples" / "deploy" / "kubernetes").glob("*.yaml"))
APP = ROOT / "examples" / "deploy" / "kubernetes" / "app.yaml"
PROGRAMS = ROOT / "target" / "kubernetes" / "bin"
POD = "127.0.0.1"
PATIENCE = 120.0

pytestmark = [
    pytest.mark.skipif(UVICORN, reason="uvicorn has no such port"),
    pytest.mark.skipif(not (PROGRAMS / "apiserver").exists(), reason="it has to be built: make kubernetes"),
    pytest.mark.timeout(300),
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Apiserver:
    """An apiserver with an empty etcd."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        # Its certificate is one that it makes itself, for this run.
        self._context = ssl.create_default_context()
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE

    @contextmanager
    def running(self) -> Iterator[None]:
        etcd, peer = free_port(), free_port()
        place, raft = f"http://127.0.0.1:{etcd}", f"http://127.0.0.1:{peer}"
        key = self._folder / "accounts.key"
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
        (self._folder / "tokens.csv").write_text('told,admin,admin,"system:masters"\n')
        commands = [
            [
                *(
                    "etcd",
                    "--data-dir",
                    "etcd",
                    "--listen-client-urls",
                    place,
                    "--advertise-client-urls",
                    place,
                ),
                *("--listen-peer-urls", raft, "--initial-advertise-peer-urls", raft),
                *("--initial-cluster", f"default={raft}"),
            ],
            [
                *(
                    "apiserver",
                    f"--etcd-servers={place}",
                    "--bind-address=127.0.0.1",
                    "--cert-dir=certificates",
                ),
                *("--advertise-address=127.0.0.1", f"--secure-port={self._port}"),
                *("--service-account-issuer=https://kubernetes.default.svc", "--token-auth-file=tokens.csv"),
                *(f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}"),
                *("--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24"),
                "--disable-admission-plugins=ServiceAccount",
            ],
        ]
        running = []
        with open(self._folder / "said", "wb") as said:
            try:
                for name, *words in commands:
                    program = [str(PROGRAMS / name), *words]
                    running.append(subprocess.Popen(program, cwd=self._folder, stdout=said, stderr=said))
                wait_for(lambda: self.ask("/readyz")[0] == 200, lambda: (self._folder / "said").read_text())
                yield
            finally:
                for each in reversed(running):
                    each.kill()
                    each.wait()

    def ask(self, path: str, body: bytes | None = None) -> tuple[int, str]:
        """The status and text of an answer; 0 when there is none."""
        headers = {"Authorization": "Bearer told", "Content-Type": "application/yaml"}
        request = urllib.request.Request(f"https://127.0.0.1:{self._port}{path}", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=30, context=self._context) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as answer:
            return answer.code, answer.read().decode()
        except OSError as problem:
            return 0, str(problem)

    def would_take(self, document: str) -> tuple[int, str]:
        """A strict dry run: what has a field it does not know, or breaks a rule, is refused."""
        version, kind = (
            re.findall(rf"^{name}: (\S+)$", document, re.M)[0] for name in ("apiVersion", "kind")
        )
        group = "api" if "/" not in version else "apis"
        path = f"/{group}/{version}/namespaces/default/{kind.lower()}s"
        return self.ask(f"{path}?dryRun=All&fieldValidation=Strict", document.encode())


def wait_for(condition: Callable[[], object], said: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, said()[-8000:]
        time.sleep(0.1)


@pytest.fixture(scope="module")
def apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apiserver]:
    apiserver = Apiserver(tmp_path_factory.mktemp("apiserver"))
    with apiserver.running():
        yield apiserver


def documents() -> Iterator[object]:
    for manifest in MANIFESTS:
        for text in manifest.read_text().split("\n---\n"):
            kind = re.findall(r"^kind: (\S+)$", text, re.M)[0]
            yield pytest.param(text, id=f"{manifest.name}:{kind}")


@pytest.mark.parametrize("document", [*documents()])
def test_an_apiserver_takes_each_document_to_the_letter(apiserver: Apiserver, document: str) -> None:
    status, said = apiserver.would_take(document)
    assert status == 201, said


def test_the_dry_run_is_strict(apiserver: Apiserver) -> None:
    [deployment] = [text for text in APP.read_text().split("\n---\n") if "\nkind: Deployment" in text]
    status, said = apiserver.would_take(deployment.replace("periodSeconds", "periodSecond"))
    assert status == 400
    assert "periodSecond" in said


class Prober:
    """The kubelet's, which asks when it is told to."""

    def __init__(self, network: hosts.Hosts, kind: str) -> None:
        self._process = network.talk("edge", [str(PROGRAMS / "probe"), str(APP), kind, POD])

    def succeeds(self) -> bool:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        said = self._process.stdout.readline()
        assert said, self._process.wait(10)
        return said.startswith("success")


def test_a_pod_is_ready_then_ends_and_loses_nobody_who_was_still_sent_there(tmp_path: Path) -> None:
    if not hosts.can_be_had():
        pytest.skip("network namespaces need root and `ip`")
    (tmp_path / "main.py").write_text((ROOT / "examples" / "hello.py").read_text())
    text = APP.read_text()
    _, *serve = container.started(text, container.IMAGES["examples/deploy/docker/Dockerfile"])
    [grace] = re.findall(r"^ +terminationGracePeriodSeconds: (\d+)$", text, re.M)
    # What the kubelet gives each container: by it the server knows where it is.
    command = ["env", "KUBERNETES_SERVICE_HOST=10.0.0.1", sys.executable, "-m", "bridgehead", *serve]
    with hosts.Hosts(without_machines=True) as network:
        pod = network.start("edge", command, tmp_path / "pod", tmp_path)
        said = (tmp_path / "pod").read_text
        startup, liveness, readiness = (
            Prober(network, kind) for kind in ("startup", "liveness", "readiness")
        )
        wait_for(startup.succeeds, said)
        wait_for(readiness.succeeds, said)
        assert liveness.succeeds()
        load = [sys.executable, "-m", "bridgehead", "load", f"http://{POD}:8000/", "--rate", "200"]
        report = tmp_path / "report.json"
        # A connection each: whom the kernel's table sends here goes on coming until that has changed.
        load += ["--no-keep-alive", "--duration", "10m", "--json", str(report)]
        loading = network.start("edge", load, tmp_path / "load", tmp_path)
        wait_for(lambda: said().count('"method"') > 100, said)
        pod.send_signal(signal.SIGTERM)
        told = time.monotonic()
        wait_for(lambda: not readiness.succeeds(), said)
        assert liveness.succeeds(), "it is not to be killed while it ends"
        before = said().count('"method"')
        wait_for(lambda: said().count('"method"') > before + 100, said)
        loading.send_signal(signal.SIGTERM)
        assert loading.wait(PATIENCE) == 0, (tmp_path / "load").read_text()
        assert pod.wait(float(grace)) == 0, said()
        ended = time.monotonic() - told
    came = json.loads(report.read_text())
    assert came["errors"] == 0, came["first_errors"]
    print(
        f"the pod ended {ended:.1f} s after it was told to, of {grace}; {came['requests']} requests, no error"
    )
