"""The ledger, the canary, and the judge of the promise: each way to break it is caught."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from bridgehead.pytest_plugin import MakeCanary, ServeApp
from bridgehead.testing import (
    Breach,
    Canary,
    Entry,
    Event,
    Folder,
    Ledger,
    Outcome,
    Sent,
    Served,
    ServerProcess,
    Verdict,
    judge,
    read_ledger,
)
from bridgehead.testing.canary_app import body_of
from bridgehead.testing.ledger import ids_of

TARGET = "bridgehead.testing.canary_app:app"
PATHS = ("/", "/?wait=0.02", "/?wait=0.01&pieces=4")


# --- the ledger


def test_a_ledger_has_what_was_noted_before_kill_9(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "from bridgehead.testing.ledger import Event, Ledger\n"
        "ledger = Ledger(sys.argv[1])\n"
        "for n in range(1000): ledger.note(n, Event.STARTED)\n"
        "ledger.note(5, Event.CANCELLED)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    entries = read_ledger(tmp_path)
    assert [entry.request for entry in entries] == [*range(1000), 5]
    assert entries[-1].event is Event.CANCELLED
    assert len({entry.process for entry in entries}) == 1


def test_processes_and_threads_do_not_write_over_each_other(tmp_path: Path) -> None:
    first, second = Ledger(tmp_path), Ledger(tmp_path)

    def note(ledger: Ledger, base: int) -> None:
        for number in range(500):
            ledger.note(base + number, Event.STARTED)

    threads = [
        threading.Thread(target=note, args=(ledger, 1000 * number))
        for number, ledger in enumerate([first, first, second, second])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = sorted(entry.request for entry in read_ledger(tmp_path))
    assert found == sorted(1000 * number + each for number in range(4) for each in range(500))


def test_a_record_without_its_event_is_none(tmp_path: Path) -> None:
    with Ledger(tmp_path, capacity=4) as ledger:
        ledger.note(1, Event.STARTED)
        ledger.note(2, Event.STARTED)
    [file] = tmp_path.glob("*.ledger")
    torn = bytearray(file.read_bytes())
    torn[12] = 0
    file.write_bytes(torn)
    assert read_ledger(tmp_path) == [Entry(2, Event.STARTED, os.getpid())]


def test_a_full_ledger_says_so(tmp_path: Path) -> None:
    with Ledger(tmp_path, capacity=1) as ledger:
        ledger.note(1, Event.STARTED)
        with pytest.raises(RuntimeError, match="full"):
            ledger.note(1, Event.FINISHED)


# --- the judge, by table


def sent(
    outcome: Outcome, *, fully: bool = True, right: bool = True, answers: int = 1, status: int = 200
) -> Sent:
    return Sent(
        request=7, at=0.0, outcome=outcome, fully_sent=fully, status=status, is_right=right, answers=answers
    )


CASES = {
    "answered once": (sent(Outcome.ANSWERED), 1, []),
    "refused without a start": (sent(Outcome.REFUSED, status=503), 0, []),
    "closed without a start": (sent(Outcome.CLOSED), 0, []),
    "no connection": (sent(Outcome.UNREACHED, fully=False), 0, []),
    "not fully sent, begun and closed": (sent(Outcome.CLOSED, fully=False), 1, []),
    "an error page of the server's": (sent(Outcome.ANSWERED, status=400), 0, []),
    "run twice": (sent(Outcome.ANSWERED), 2, [Breach.RAN_TWICE]),
    "run twice and closed": (sent(Outcome.CLOSED), 2, [Breach.STARTED_AND_CLOSED, Breach.RAN_TWICE]),
    "fully sent and unanswered": (sent(Outcome.SILENCE), 1, [Breach.UNANSWERED]),
    "fully sent, not begun and unanswered": (sent(Outcome.SILENCE), 0, [Breach.UNANSWERED]),
    "begun and closed": (sent(Outcome.CLOSED), 1, [Breach.STARTED_AND_CLOSED]),
    "visibly broken": (sent(Outcome.BROKEN), 1, [Breach.BROKEN_OFF]),
    "truncated and looks complete": (sent(Outcome.ANSWERED, right=False), 1, [Breach.LOOKS_COMPLETE]),
    "answered twice": (sent(Outcome.ANSWERED, answers=2), 1, [Breach.ANSWERED_TWICE]),
    "answered by nobody": (sent(Outcome.ANSWERED), 0, [Breach.ANSWERED_BY_NOBODY]),
}


@pytest.mark.parametrize("case", CASES)
def test_the_judge_knows(case: str) -> None:
    log, starts, breaches = CASES[case]
    verdict = judge([log], [Entry(7, Event.STARTED, 1)] * starts)
    assert [violation.breach for violation in verdict.violations] == breaches
    if breaches:
        with pytest.raises(AssertionError, match="of 1 requests"):
            verdict.assert_kept()
        verdict.assert_kept(excused=breaches)
    elif log.fully_sent:
        verdict.assert_kept()
    else:
        with pytest.raises(AssertionError, match="nothing was shown"):
            verdict.assert_kept()


def test_a_start_that_nobody_has_sent_is_told() -> None:
    verdict = judge([sent(Outcome.ANSWERED)], [Entry(each, Event.STARTED, 1) for each in (7, 8)])
    assert [(each.request, each.breach) for each in verdict.violations] == [(8, Breach.NEVER_SENT)]


def test_what_others_have_sent_is_theirs_to_judge_and_what_nobody_has_sent_is_told() -> None:
    ours, theirs, nobodys = (ids_of(sender)[0] for sender in (1, 2, 3))
    ledger = [Entry(each, Event.STARTED, 1) for each in (ours, ours + 1, theirs, theirs, nobodys)]
    log = [Sent(request=ours, at=0.0, outcome=Outcome.ANSWERED, status=200)]
    verdict = judge(log, ledger, others={2})
    assert {(each.request, each.breach) for each in verdict.violations} == {
        (ours + 1, Breach.NEVER_SENT),
        (nobodys, Breach.NEVER_SENT),
    }
    assert verdict.unended == (ours, ours + 1, nobodys)


def test_what_was_begun_and_never_ended_is_told() -> None:
    ledger = [Entry(1, Event.STARTED, 1), Entry(7, Event.STARTED, 1), Entry(7, Event.CANCELLED, 1)]
    assert judge([], ledger).unended == (1,)


def test_nothing_is_shown_by_no_request() -> None:
    with pytest.raises(AssertionError, match=r"nothing was shown \(none was begun\)"):
        judge([], []).assert_kept()


def test_nothing_is_shown_where_nobody_is_reached(ledger: Folder) -> None:
    # Bound, and nobody listens: whoever connects is refused.
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        with Canary(url, ledger=ledger, rate=100) as canary:
            canary.wait_for(5)
            verdict = canary.check()
    assert set(verdict.outcomes) == {Outcome.UNREACHED}
    with pytest.raises(AssertionError, match=r"nothing was shown \(\d+ × UNREACHED\)"):
        verdict.assert_kept()


# --- the judge, with servers that break the promise


def head(length: int | None) -> bytes:
    declared = b"" if length is None else b"Content-Length: %d\r\n" % length
    return b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + declared + b"\r\n"


def runs_twice(ledger: Ledger, request: int) -> bytes:
    ledger.note(request, Event.STARTED)
    return keeps(ledger, request)


def cuts_and_looks_complete(ledger: Ledger, request: int) -> bytes:
    ledger.note(request, Event.STARTED)
    # Nothing but the end of the connection says that it is over.
    return head(None) + body_of(request)[:1000]


def cuts_visibly(ledger: Ledger, request: int) -> bytes:
    ledger.note(request, Event.STARTED)
    return head(2048) + body_of(request)[:1000]


def begins_and_closes(ledger: Ledger, request: int) -> bytes:
    ledger.note(request, Event.STARTED)
    return b""


def answers_twice(ledger: Ledger, request: int) -> bytes:
    return keeps(ledger, request) * 2


def says_garbage(_: Ledger, __: int) -> bytes:
    return b"oops\r\n\r\n"


def says_too_much(ledger: Ledger, request: int) -> bytes:
    ledger.note(request, Event.STARTED)
    return b"HTTP/1.1 200 OK\r\nX-Large: " + b"a" * 70_000 + b"\r\n\r\n"


def says_an_interim_answer_alone(_: Ledger, __: int) -> bytes:
    return b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"


def says_an_interim_answer_first(ledger: Ledger, request: int) -> bytes:
    return b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + keeps(ledger, request)


def chunked(ledger: Ledger, request: int, end: bytes) -> bytes:
    ledger.note(request, Event.STARTED)
    started = b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    return started + b"800;a=b\r\n" + body_of(request) + b"\r\n" + end


def has_trailers(ledger: Ledger, request: int) -> bytes:
    return chunked(ledger, request, b"0\r\nx: y\r\nz: 1\r\n\r\n")


def cuts_its_trailers(ledger: Ledger, request: int) -> bytes:
    return chunked(ledger, request, b"0\r\nx: y\r\n")


def says_more_behind_its_trailers(ledger: Ledger, request: int) -> bytes:
    return chunked(ledger, request, b"0\r\nx: y\r\n\r\nz: 1\r\n")


def invents(_: Ledger, request: int) -> bytes:
    return head(2048) + body_of(request)


def keeps(ledger: Ledger, request: int) -> bytes:
    ledger.note(request, Event.STARTED)
    return head(2048) + body_of(request)


def refuses(_: Ledger, __: int) -> bytes:
    return b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def closes(_: Ledger, __: int) -> bytes:
    return b""


Answering = Callable[[Ledger, int], bytes | None]


@contextmanager
def behaving(answer: Answering, folder: Folder) -> Iterator[str]:
    """A server of one answer for each connection; None: it keeps silent, and open."""
    silent: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener, Ledger(folder) as ledger:
        listener.settimeout(20)

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                data = b""
                while b"\r\n\r\n" not in data:
                    data += connection.recv(4096)
                request = int(data.lower().partition(b"x-canary: ")[2].split(b"\r\n")[0])
                if (said := answer(ledger, request)) is None:
                    silent.append(connection)
                    continue
                # The client may have left, having seen enough.
                with suppress(OSError):
                    connection.sendall(said)
                connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)
            for connection in silent:
                connection.close()


@pytest.mark.parametrize(
    ("answer", "breaches"),
    [
        (runs_twice, {Breach.RAN_TWICE}),
        (cuts_and_looks_complete, {Breach.LOOKS_COMPLETE}),
        (cuts_visibly, {Breach.BROKEN_OFF}),
        (begins_and_closes, {Breach.STARTED_AND_CLOSED}),
        (answers_twice, {Breach.ANSWERED_TWICE}),
        (says_garbage, {Breach.BROKEN_OFF}),
        (says_too_much, {Breach.BROKEN_OFF}),
        (says_an_interim_answer_alone, {Breach.BROKEN_OFF}),
        (says_an_interim_answer_first, set()),
        (has_trailers, set()),
        (cuts_its_trailers, {Breach.BROKEN_OFF}),
        (says_more_behind_its_trailers, {Breach.ANSWERED_TWICE}),
        (invents, {Breach.ANSWERED_BY_NOBODY}),
        (lambda _, __: None, {Breach.UNANSWERED}),
        (keeps, set()),
        (refuses, set()),
        (closes, set()),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_canary_catches_a_server_that(answer: Answering, breaches: set[Breach], ledger: Folder) -> None:
    with behaving(answer, ledger) as url, Canary(url, ledger=ledger, rate=50, patience=0.5) as canary:
        canary.wait_for(6)
        verdict = canary.check()
    assert {violation.breach for violation in verdict.violations} == breaches
    if breaches:
        assert len(verdict.violations) >= 6


def begins_another(ledger: Ledger, request: int) -> bytes:
    # The id of a sender that nobody knows.
    ledger.note(request + (1 << 24), Event.STARTED)
    return keeps(ledger, request)


def test_two_canaries_of_one_ledger_judge_their_own_and_both_tell_what_nobody_has_sent(
    ledger: Folder,
) -> None:
    for answer, breaches in ((keeps, set()), (begins_another, {Breach.NEVER_SENT})):
        with (
            behaving(answer, ledger) as url,
            Canary(url, ledger=ledger, rate=50) as first,
            Canary(url, ledger=ledger, rate=50) as second,
        ):
            first.wait_for(6)
            second.wait_for(6)
            # The second goes on meanwhile.
            for canary in (first, second):
                verdict = canary.check()
                assert {violation.breach for violation in verdict.violations} == breaches


# --- the promise of Bridgehead


def test_two_canaries_watch_one_server(serve_app: ServeApp, canary: MakeCanary, ledger: Folder) -> None:
    server = serve_app(TARGET, env=ledger.env)
    first, second = canary(server), canary(server)
    for each in (first, second):
        each.wait_for(5)
    first.check().assert_kept()
    second.check().assert_kept()


def kept_through_a_stop(server: Served, watching: Canary, answers: int) -> Verdict:
    """What was seen of a server that is stopped after so many."""
    watching.wait_for(answers)
    server.stop()
    watching.wait_for(5)
    verdict = watching.check()
    verdict.assert_kept()
    assert verdict.outcomes[Outcome.ANSWERED] >= answers
    return verdict


def test_a_server_that_is_stopped_keeps_the_promise(
    serve_app: ServeApp, canary: MakeCanary, ledger: Folder, tmp_path: Path
) -> None:
    server = serve_app(TARGET, env=ledger.env)
    watching = canary(server, PATHS, rate=100, log=tmp_path / "client.jsonl")
    verdict = kept_through_a_stop(server, watching, 40)
    assert verdict.unended == ()
    assert len((tmp_path / "client.jsonl").read_text().splitlines()) == verdict.sent


def test_a_canarys_bodies_arrive_as_they_were_sent_also_when_the_server_is_stopped(
    serve_app: ServeApp, canary: MakeCanary, ledger: Folder
) -> None:
    server = serve_app(TARGET, env=ledger.env)
    watching = canary(server, PATHS, rate=100, bodies=True)
    kept_through_a_stop(server, watching, 48)


def test_a_body_that_came_as_another_is_told(
    serve_app: ServeApp, canary: MakeCanary, ledger: Folder, tmp_path: Path
) -> None:
    (tmp_path / "swapping.py").write_text(SWAPPING)
    server = serve_app("swapping:app", cwd=tmp_path, env=ledger.env)
    watching = canary(server, rate=100, bodies=True)
    watching.wait_for(24)
    verdict = watching.check()
    assert {each.breach for each in verdict.violations} == {Breach.LOOKS_COMPLETE}
    # Every third, of each kind: those without a body are right.
    assert sum(not sent.is_right for sent in watching.log) == -(-len(watching.log) // 3)


SWAPPING = """
from bridgehead.testing import canary_app

async def app(scope, receive, send):
    async def swapped():
        message = await receive()
        return message | {"body": message.get("body", b"")[:-1] + b"?"} if message.get("body") else message
    await canary_app.app(scope, swapped, send)
"""

FILES = Path(__file__).resolve().parent.parent / "tls" / "files"


def test_a_server_that_is_stopped_keeps_the_promise_by_tls(
    serve_app: ServeApp, canary: MakeCanary, ledger: Folder
) -> None:
    files: dict[str, Any] = {
        "ssl_certfile": str(FILES / "server.pem"),
        "ssl_keyfile": str(FILES / "server.key"),
    }
    server = serve_app(TARGET, env=ledger.env, **files)
    assert server.url.startswith("https://")
    believing = ssl.create_default_context(cafile=FILES / "authority.pem")
    watching = canary(server, PATHS, rate=50, tls=believing)
    kept_through_a_stop(server, watching, 40)
    assert any(sent.kept for sent in watching.log)


def test_a_server_whom_a_canary_does_not_believe_is_not_reached(
    serve_app: ServeApp, canary: MakeCanary, ledger: Folder
) -> None:
    server = serve_app(TARGET, env=ledger.env, ssl_self_signed=True)
    watching = canary(server)
    watching.wait_for(3)
    assert watching.check().outcomes.keys() == {Outcome.UNREACHED}


def test_a_server_that_is_killed_breaks_off_what_is_under_way_and_nothing_else(
    serve_app: ServeApp, canary: MakeCanary, ledger: Folder
) -> None:
    server = serve_app(TARGET, env=ledger.env)
    assert isinstance(server, ServerProcess)
    watching = canary(server, [*PATHS, "/?wait=60"], rate=100)
    watching.wait_for(40)
    server.kill()
    watching.wait_for(5)
    verdict = watching.check()
    assert {each.breach for each in verdict.violations} <= {Breach.STARTED_AND_CLOSED, Breach.BROKEN_OFF}
    assert verdict.unended
    verdict.assert_kept(excused=[Breach.STARTED_AND_CLOSED, Breach.BROKEN_OFF])


def test_a_canary_that_nobody_checks_is_checked_with_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        lossy="""
        from bridgehead.testing import Ledgered

        async def answer(scope, receive, send):
            assert scope["type"] == "http"
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"another body"})

        app = Ledgered(answer)
        """,
        test_it="""
        def test_lossy(serve_app, canary, ledger):
            canary(serve_app("lossy:app", env=ledger.env), rate=100).wait_for(3)

        def test_any_body(serve_app, canary, ledger):
            canary(serve_app("lossy:app", env=ledger.env), rate=100, due=None).wait_for(3)
        """,
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:asyncio")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*its answer looks complete, and is not what was due*"])


def test_the_page_has_every_breach() -> None:
    page = (Path(__file__).resolve().parent.parent.parent / "docs" / "testing.md").read_text()
    for breach in Breach:
        assert f"| `{breach.name}` |" in page
