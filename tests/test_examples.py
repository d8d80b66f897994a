"""Each example does what its docstring promises, served as the docstring says."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import signal
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from harness import Server, WebSocket

ROOT = Path(__file__).resolve().parent.parent
# Started by Python; the others are applications.
PROGRAMS = {"contention.py", "embedded.py"}
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def serve(name: str, *options: str) -> Server:
    """The example as its run line has it, from the top of the repository."""
    return Server(f"examples/{name}", *options, cwd=ROOT)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_short_says_how_to_run_it_and_is_in_the_index(example: Path) -> None:
    text = example.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    promise = ast.get_docstring(ast.parse(text)) or ""
    command = "python" if example.name in PROGRAMS else "serve"
    words = f"Run it: {command} examples/{example.name}"
    assert any(line == words or line.startswith(f"{words} --") for line in promise.splitlines())
    index = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert f"| [{example.name}]({example.name}) |" in index


def test_hello_greets() -> None:
    with serve("hello.py") as server:
        assert server.ask("/").body == b"Hello from Bridgehead\n"


def test_streaming_sends_each_line_when_it_is_made_and_all_rows() -> None:
    with serve("streaming.py") as server:
        with server.connect() as client:
            client.send(b"GET /?pause=0.1 HTTP/1.1\r\nHost: test\r\n\r\n")
            client.read_head()
            chunks = list(client.read_chunks())
        assert b"".join(chunks) == b"".join(b"tick %d\n" % number for number in range(1, 6))
        assert len(chunks) > 1
        rows = server.ask("/rows").body.splitlines()
        assert (len(rows), rows[0], rows[-1]) == (100_000, b"row 0", b"row 99999")


def test_who_by_certificate_greets_by_tls() -> None:
    blind = ssl.create_default_context()
    blind.check_hostname, blind.verify_mode = False, ssl.CERT_NONE
    with serve("who_by_certificate.py", "--ssl-self-signed") as server:
        place = f"https://127.0.0.1:{server.port}/"
        with urllib.request.urlopen(place, context=blind, timeout=15) as answer:
            assert answer.read() == b"Hello, whoever you are, by TLS 0x0304\n"


def test_one_page_has_files_by_the_network_and_numbers_by_the_application() -> None:
    promise = ast.get_docstring(ast.parse((ROOT / "examples" / "one_page.py").read_text())) or ""
    [line] = re.findall(r"^Run it: serve examples/one_page.py (.+)$", promise, re.M)
    with serve("one_page.py", *line.split()) as server, server.connect() as client:
        page = (ROOT / "examples" / "site" / "index.html").read_bytes()
        assert client.ask("/").body == page
        assert client.ask("/settings/mail", headers=[("Accept", "text/html")]).body == page
        # Wherever the page is, it has its style from there.
        assert re.findall(rb'href="([^"]+)"', page) == [b"/style.css"]
        style = client.ask("/style.css", headers=[("Range", "bytes=0-3")])
        assert (style.status, style.body) == (206, b"body")
        assert style.header("etag")
        assert client.ask("/api/count").json() == {"count": 1}
        assert client.ask("/api/none", headers=[("Accept", "text/html")]).status == 404


def test_upload_answers_size_and_hash() -> None:
    body = b"0123456789abcdef" * 65_536
    with serve("upload.py") as server:
        answer = server.ask("/", method="PUT", body=body).json()
    assert answer == {"size": len(body), "sha256": hashlib.sha256(body).hexdigest()}


def test_disconnect_tells_those_who_wait_and_notices_those_who_leave() -> None:
    with serve("disconnect.py") as server:
        leaver, waiter = server.connect(), server.connect()
        for client in (leaver, waiter):
            client.send(b"GET /wait HTTP/1.1\r\nHost: test\r\n\r\n")
        leaver.close()
        server.wait_line("a client left", stream="stdout")
        # A news item may come before the waiter's request has begun: it is sent until somebody was told.
        while server.ask("/news", method="POST", body=b"hello").body == b"told 0\n":
            pass
        assert waiter.read_response().body == b"hello\n"


def test_chat_tells_everybody_what_one_says() -> None:
    with serve("chat.py") as server:
        assert b"new WebSocket" in server.ask("/").body
        ada, bob = (WebSocket(server.connect(), "/") for _ in range(2))
        # Who is accepted hears what is said from then on: both have heard themselves.
        for each in (ada, bob):
            each.send_text("here")
        while bob.read_text() != "here":
            pass
        bob.send_text("hello")
        for each in (ada, bob):
            while each.read_text() != "hello":
                pass
        assert ada.close() == (1000, "")


def test_lifespan_state_counts_requests_and_prints_them_at_the_end() -> None:
    with serve("lifespan_state.py") as server:
        assert [server.ask("/").body for _ in range(3)] == [b"request %d\n" % number for number in (1, 2, 3)]
        server.stop()
        assert "3 requests\n" in server.stdout


def test_fastapi_reads_and_writes_items_and_takes_a_file() -> None:
    pytest.importorskip("fastapi")
    pytest.importorskip("python_multipart")
    part = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhello\r\n--x--\r\n'
    with serve("fastapi_app.py") as server:
        assert server.ask("/items/3").json() == {"name": "teapot", "price": 12.5}
        assert server.ask("/items/4").status == 404
        assert server.ask("/items/four").status == 422
        assert server.ask("/docs").status == 200
        with server.connect() as client:
            cup = b'{"name": "cup", "price": 3}'
            json = [("Content-Type", "application/json")]
            assert client.ask("/items/4", method="PUT", body=cup, headers=json).status == 200
            form = [("Content-Type", "multipart/form-data; boundary=x")]
            upload = client.ask("/files", method="POST", body=part, headers=form)
        assert server.ask("/items/4").json() == {"name": "cup", "price": 3.0}
        assert upload.json() == {"name": "a.txt", "size": 5}


def test_starlette_sends_its_file_works_afterwards_and_streams() -> None:
    pytest.importorskip("starlette")
    source = (ROOT / "examples" / "starlette_app.py").read_bytes()
    with serve("starlette_app.py") as server:
        whole = server.ask("/source")
        assert whole.body == source
        assert whole.header("etag")
        with server.connect() as client:
            part = client.ask("/source", headers=[("Range", "bytes=0-9")])
        assert (part.status, part.body) == (206, source[:10])
        accepted = server.ask("/jobs/tea", method="POST")
        assert (accepted.status, accepted.json()) == (202, {"accepted": "tea"})
        while server.ask("/jobs").json() == {"done": []}:
            pass
        assert server.ask("/jobs").json() == {"done": ["tea"]}
        assert server.ask("/numbers").body.split() == [b"%d" % number for number in range(1000)]


def test_embedded_asks_its_own_server_and_ends() -> None:
    program = [sys.executable, "examples/embedded.py"]
    ended = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=30, check=True)
    assert ended.stdout.splitlines() == ["request 1", "request 2", "request 3", "the server has ended"]
    assert ended.stderr == ""


def test_wsgi_greets_streams_and_takes_a_file() -> None:
    pytest.importorskip("flask")
    part = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhello\r\n--x--\r\n'
    with serve("wsgi_app.py", "--interface", "wsgi") as server:
        assert server.ask("/").body == b"Hello from Flask\n"
        assert len(server.ask("/rows").body.splitlines()) == 1000
        with server.connect() as client:
            form = [("Content-Type", "multipart/form-data; boundary=x")]
            upload = client.ask("/files", method="POST", body=part, headers=form)
        assert upload.json() == {"name": "a.txt", "size": 5}


def test_admission_lets_two_in_at_once_and_answers_503_beyond_the_queue() -> None:
    pytest.importorskip("fastapi")
    with serve("admission.py") as server:
        assert server.ask("/report").json() == {"answer": 42}
        assert server.ask("/two").json() == {"answers": [42, 42]}
        clients = [server.connect() for _ in range(30)]
        for client in clients:
            client.send(b"GET /report HTTP/1.1\r\nHost: test\r\n\r\n")
        answers = [client.read_response() for client in clients]
        refused = [answer for answer in answers if answer.status == 503]
        assert {answer.status for answer in answers} == {200, 503}
        assert all(answer.header("retry-after") == "1" for answer in refused)
        gauges = server.ask("/gauges").json()
        assert (gauges["slots"], gauges["running"], gauges["waiting"]) == (2, 0, 0)
        assert gauges["full"] + gauges["late"] == len(refused)
        assert gauges["most_waiting"] <= 20


def test_contention_shows_waits_against_slots() -> None:
    program = [sys.executable, "examples/contention.py"]
    ended = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=50, check=True)
    table = ended.stdout.partition("p99 wait")[2].splitlines()[1:]
    assert [line.split()[0] for line in table] == ["1", "2", "5", "10", "20", "50"]
    assert table[-1].split()[1:] == ["0.0", "ms", "0.0", "ms", "0"]


def test_fan_out_asks_a_few_at_a_time_and_leaves_nobody_running_when_one_fails() -> None:
    with serve("fan_out.py") as server:
        whole = server.ask("/?count=50").json()
        assert whole["answers"] == [number * number for number in range(50)]
        assert (whole["most"], whole["running"]) == (10, 0)
        failed = server.ask("/?count=50&broken=7")
        assert (failed.status, failed.json()["errors"]) == (502, ["service 7 is not there"])
        assert failed.json()["running"] == 0


def test_queue_workers_do_what_is_queued_before_they_end() -> None:
    with serve("queue_workers.py") as server:
        assert [server.ask("/", method="POST", body=b"%d" % job).status for job in range(20)] == [202] * 20
        server.stop()
        lines = server.stdout.splitlines()
        done = {line.split()[-1] for line in lines if " did " in line}
        assert done == {str(job) for job in range(20)}
        assert sum(line.endswith(" is done") for line in lines) == 3


def test_cleanup_unlocks_when_a_client_leaves_and_at_a_stop() -> None:
    with serve("cleanup.py", "--timeout-graceful-shutdown", "2") as server:
        for _ in range(2):
            client = server.connect()
            client.send(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
            while server.ask("/locked").body != b"row 7":
                pass
            if server.stdout.count("unlocked row 7") == 0:
                client.close()
                server.wait_line("unlocked row 7", stream="stdout")
                while server.ask("/locked").body:
                    pass
        server.stop()
        assert server.stdout.count("unlocked row 7") == 2


def test_one_worker_leads_and_another_when_that_is_killed(tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    pytest.importorskip("grelmicro")
    options = ("--workers", "2", "--no-access-log")
    environment = {"LOCKS": str(tmp_path / "locks.db")}
    with Server("examples/leader.py", *options, cwd=ROOT, env=environment, allow=["Traceback"]) as server:
        server.wait_line(" cleans up", stream="stdout")
        killed = int(re.findall(r"worker (\d+) cleans up", server.stdout)[-1])
        os.kill(killed, signal.SIGKILL)
        while set(re.findall(r"worker (\d+) cleans up", server.stdout)) == {str(killed)}:
            assert server.ask("/").status == 200
        server.stop()


def test_the_index_names_no_file_that_is_not_there() -> None:
    index = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\[(\w+\.py)\]", index)) == [example.name for example in EXAMPLES]
