"""`serve --reload`, as a developer at the keyboard sees it: files are saved, lines and answers come."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from harness import UVICORN, Client, Server, WebSocket, request
from harness.server import STARTUP_SECONDS

pytestmark = pytest.mark.skipif(UVICORN, reason="of lines and exit codes that are ours")

APP = """
import os, signal, sys, time

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                print("app: shutdown", file=sys.stderr, flush=True)
            await send({{"type": message["type"] + ".complete"}})
            if message["type"] == "lifespan.shutdown":
                return
    if scope["type"] == "websocket":
        await send({{"type": "websocket.accept"}})
        message = {{}}
        while message.get("type") != "websocket.disconnect":
            message = await receive()
        print("app: left by", message["code"], file=sys.stderr, flush=True)
        return
    path = scope["path"]
    if path == "/stuck":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("app: stuck", file=sys.stderr, flush=True)
        while True:
            pass
    if path == "/held":
        import ctypes
        print("app: held", file=sys.stderr, flush=True)
        ctypes.PyDLL(None).sleep(3600)
    if path == "/slow":
        print("app: slow", file=sys.stderr, flush=True)
        time.sleep(0.3)
    if path == "/thread":
        import asyncio, threading
        print("app: in a thread", file=sys.stderr, flush=True)
        await asyncio.to_thread(threading.Event().wait)
    if path == "/exit":
        os._exit(7)
    if path == "/kill":
        os.kill(os.getpid(), signal.SIGSEGV)
    await send({{"type": "http.response.start", "status": 200, "headers": []}})
    while path == "/stream":
        await send({{"type": "http.response.body", "body": b"more", "more_body": True}})
        await receive()
        import asyncio
        await asyncio.sleep(3600)
    await send({{"type": "http.response.body", "body": {body!r}}})
"""
DETECTED = "Bridgehead detected changes in "
FAILED = b"The application did not start: see the terminal. It is started again when a file changes.\n"
ENDED = b"The application has ended by itself: see the terminal. It is started again when a file changes.\n"


class Project:
    """A developer's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.save("one")

    def save(self, body: str, *, before: str = "", after: str = "", name: str = "main.py") -> None:
        text = before + APP.format(body=body.encode()) + after
        # As editors do: at no time is there half a file.
        beside = self.folder / f"{name}.new"
        beside.write_text(text)
        beside.rename(self.folder / name)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def serve(self, *options: str, **settings: object) -> Server:
        return Server("main:app", "--reload", *options, cwd=self.folder, **settings)  # type: ignore[arg-type]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def said(server: Server, text: str, *, stream: str = "stderr", count: int = 1) -> str:
    """A line that may take the start of two Pythons on a busy machine."""
    return server.wait_line(text, stream=stream, count=count, timeout=STARTUP_SECONDS)


def wait_serving(server: Server, count: int) -> None:
    said(server, "running on", count=count)


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_saved_file_is_served_on_the_same_port(project: Project) -> None:
    with project.serve() as server:
        assert server.ask("/").body == b"one"
        for count, body in enumerate(["two", "three"], 2):
            project.save(body)
            wait_serving(server, count)
            assert server.ask("/").body == body.encode()
        server.stop()
        assert server.stderr.count(f"{DETECTED}'main.py'. Reloading...") == 2
        assert server.stderr.count("app: shutdown") == 3


def test_what_people_know_is_said(project: Project) -> None:
    with project.serve() as server:
        server.stop()
        lines = server.stderr.splitlines()
    assert lines[0] == f"INFO:     Will watch for changes in these directories: ['{project.folder}']"
    assert re.fullmatch(rf"INFO:     Started reloader process \[{server.pid}\] using \w+", lines[1])
    assert re.fullmatch(r"INFO:     Started server process \[\d+\]", lines[2])
    assert lines[-1] == f"INFO:     Stopping reloader process [{server.pid}]"


def test_a_request_that_comes_while_the_application_starts_waits_for_the_new_one(project: Project) -> None:
    os.mkfifo(project.folder / "gate")
    with project.serve() as server:
        project.save("two", before="print('app: at the gate', flush=True); open('gate').read()\n")
        said(server, "app: at the gate", stream="stdout")
        with server.connect() as client:
            client.send(request("/"))
            (project.folder / "gate").write_text("open")
            assert client.read_response().body == b"two"


@pytest.mark.parametrize("how", ["stuck", "held", "slow"])
def test_whoever_comes_after_a_save_is_answered_by_the_new_code_whatever_holds_the_old(
    project: Project, loop: str, how: str
) -> None:
    with project.serve("--loop", loop, allow=["Fatal Python error"] if how == "held" else []) as server:
        holder = server.connect()
        holder.send(request(f"/{how}"))
        said(server, f"app: {how}")
        project.save("two")
        said(server, DETECTED)
        clients = [server.connect(timeout=STARTUP_SECONDS) for _ in range(9)]
        for client in clients:
            client.send(request("/"))
        assert [client.read_response().body for client in clients] == [b"two"] * 9
        if how == "held":
            said(server, "has not heard that it is to end, since something keeps Python's lock")
        if how == "slow":
            assert holder.read_response().body == b"one"


def test_whoever_comes_while_files_are_still_being_saved_is_answered_by_the_new_code(
    project: Project, loop: str
) -> None:
    options = ("--loop", loop, "--reload-delay", "1s", "--log-level", "debug")
    with project.serve(*options) as server:
        server.connect().send(request("/stuck"))
        said(server, "app: stuck")
        project.save("two")
        said(server, "Files change.")
        with server.connect(timeout=STARTUP_SECONDS) as client:
            client.send(request("/"))
            assert client.read_response().body == b"two"
        assert server.stderr.count(DETECTED) == 1


def test_whoever_comes_while_a_broken_application_is_being_mended_is_answered_by_the_new_code(
    project: Project,
) -> None:
    options = ("--reload-delay", "1s", "--log-level", "debug")
    with project.serve(*options, allow=["Traceback"]) as server:
        project.save("two", before="import not_there\n")
        said(server, "The application did not start. Waiting for a change.")
        with server.connect() as client:
            assert client.ask("/").body == FAILED
            said(server, f"Refused a request of 127.0.0.1:{client.port}: The application did not start: see")
        project.save("three")
        said(server, "Files change.", count=2)
        with server.connect(timeout=STARTUP_SECONDS) as client:
            assert client.ask("/").body == b"three"


BROKEN = {
    "syntax": ("def (\n", "main has a syntax error in main.py, line 1"),
    "import": ("import not_there\n", "main imports 'not_there', which is not installed"),
    "error": ("1 / 0\n", "ZeroDivisionError: division by zero"),
    "exit": ("raise SystemExit(0)\n", "main ended the process while it was imported"),
    "startup": ("STARTUP", "the application's startup failed"),
}


def broken(kind: str) -> dict[str, str]:
    if kind != "startup":
        return {"before": BROKEN[kind][0]}
    after = """
async def app(scope, receive, send):
    await receive()
    await send({"type": "lifespan.startup.failed", "message": "no database"})
"""
    return {"after": after}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_application_is_told_once_and_the_next_save_starts_it(project: Project, kind: str) -> None:
    with project.serve(allow=["Traceback"]) as server:
        project.save("two", **broken(kind))
        said(server, "The application did not start. Waiting for a change.")
        assert server.stderr.count(BROKEN[kind][1]) == 1
        answer = server.ask("/")
        assert (answer.status, answer.body) == (503, FAILED)
        project.save("three")
        wait_serving(server, 2)
        assert server.ask("/").body == b"three"


LEFT = {
    "a thread": "import threading; threading.Thread(target=threading.Event().wait).start()",
    "an atexit": "import atexit, threading; atexit.register(threading.Event().wait)",
    "the loop's executor": "import asyncio, threading;"
    " asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)",
}
FAILING = """
async def app(scope, receive, send):
    await receive()
    {left}
    await send({{"type": "lifespan.startup.failed", "message": "no database"}})
"""


@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_application_that_does_not_start_answers_503_whatever_it_has_left_behind(
    project: Project, left: str, workers: str
) -> None:
    with project.serve("--workers", workers, allow=["Traceback"]) as server:
        project.save("two", after=FAILING.format(left=LEFT[left]))
        said(server, "The application did not start. Waiting for a change.")
        assert server.ask("/").body == FAILED
        project.save("two", before=f"{LEFT[left]}\nimport not_there\n")
        said(server, "The application did not start. Waiting for a change.", count=2)
        assert server.ask("/").body == FAILED
        server.stop()


def test_an_application_that_is_broken_from_the_beginning_is_waited_for(tmp_path: Path) -> None:
    with Server("main:app", "--reload", cwd=tmp_path, ready=False) as server:
        said(server, "The application did not start. Waiting for a change.")
        Project(tmp_path)
        server.wait_ready()
        assert server.ask("/").body == b"one"


def test_a_stuck_application_is_killed_and_started_again(project: Project) -> None:
    with project.serve() as server, server.connect() as client:
        client.send(request("/stuck"))
        server.wait_line("app: stuck")
        project.save("two")
        wait_serving(server, 2)
        assert server.ask("/").body == b"two"
        named = "the request GET /stuck blocks the event loop, in app() at "
        assert server.stderr.count(f"did not stop within 2 s of being told to: {named}") == 1


def assert_held_briefly(server: Server) -> None:
    """2 s after the lifespan's shutdown, whatever a stop may take without a reload: more than 10 s."""
    said(server, "did not stop within ")
    [held] = re.findall(r"did not stop within ([0-9.]+) s of being told to: (.+)\. Ending", server.stderr)
    assert float(held[0]) < 9, "of which 2 s are the thread's, and the rest a busy machine's"
    assert "waits for threads that do not end" in held[1]
    assert "killed" not in server.stderr
    assert server.stderr.count("app: shutdown") == 1


def test_a_lifespan_that_blocks_the_loop_holds_a_reload_for_its_own_time_alone(project: Project) -> None:
    """Without the time that requests might have had: there are none."""
    after = """
async def app(scope, receive, send):
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    __import__("threading").Event().wait()
"""
    project.save("one", after=after)
    with project.serve("--timeout-lifespan-shutdown", "100ms") as server:
        project.save("two")
        said(server, "did not stop within ")
        [held] = re.findall(r"did not stop within ([0-9.]+) s of being told to: (.+)\. Ending", server.stderr)
        assert float(held[0]) < 5, "of which 2.1 s are given, and the rest a busy machine's"
        assert held[1].startswith("the task 'bridgehead-lifespan' blocks the event loop, in app() at ")
        wait_serving(server, 2)
        assert server.ask("/").body == b"two"
        assert "killed" not in server.stderr


def test_a_thread_that_is_left_behind_does_not_hold_a_reload(project: Project) -> None:
    waits = "import threading; threading.Thread(target=threading.Event().wait).start()\n"
    project.save("one", before=waits)
    with project.serve() as server:
        project.save("two")
        wait_serving(server, 2)
        assert server.ask("/").body == b"two"
        assert_held_briefly(server)


def test_a_handler_that_goes_on_in_a_thread_does_not_hold_a_reload(project: Project) -> None:
    with project.serve() as server, server.connect() as client:
        client.send(request("/thread"))
        server.wait_line("app: in a thread")
        project.save("two")
        wait_serving(server, 2)
        assert server.ask("/").body == b"two"
        assert_held_briefly(server)


def test_a_save_while_the_application_starts_begins_again(project: Project) -> None:
    os.mkfifo(project.folder / "gate")
    with project.serve() as server:
        project.save("two", before="print('app: at the gate', flush=True); open('gate').read()\n")
        said(server, "app: at the gate", stream="stdout")
        project.save("three")
        wait_serving(server, 2)
        assert server.ask("/").body == b"three"
        assert "killed" not in server.stderr


def test_an_open_stream_does_not_hold_a_reload_nor_the_applications_shutdown(project: Project) -> None:
    with project.serve() as server, server.connect() as client:
        client.send(request("/stream"))
        assert b"more" in client.read_until(b"more")
        project.save("two")
        wait_serving(server, 2)
        assert server.ask("/").body == b"two"
        client.read_to_any_end()
        assert server.stderr.count("app: shutdown") == 1
        assert "killed" not in server.stderr


def test_an_open_websocket_is_told_of_a_reload_and_so_is_its_application(project: Project) -> None:
    with project.serve() as server, server.connect() as client:
        socket = WebSocket(client, "/")
        project.save("two")
        assert socket.read_close() == (1012, "the server stops")
        said(server, "app: left by 1012")
        wait_serving(server, 2)
        assert server.ask("/").body == b"two"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_all_ends_parent_and_child_once(project: Project, number: signal.Signals) -> None:
    # As a terminal does at Ctrl+C: to the whole group.
    with project.serve(preexec_fn=os.setsid) as server:
        [child] = children(server.pid)
        os.killpg(server.pid, number)
        server.assert_ended_well()
        assert server.stderr.count("Finished server process") == 1
        assert server.stderr.count("app: shutdown") == 1
        assert not Path(f"/proc/{child}").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_parent_alone_ends_both(project: Project, number: signal.Signals) -> None:
    with project.serve() as server:
        [child] = children(server.pid)
        server.stop(number)
        assert server.stderr.count("app: shutdown") == 1
        assert not Path(f"/proc/{child}").exists()


def test_a_signal_to_all_while_the_application_is_imported_is_nobodys_traceback(project: Project) -> None:
    os.mkfifo(project.folder / "gate")
    project.save("one", before="print('app: at the gate', flush=True); open('gate').read()\n")
    with project.serve(ready=False, preexec_fn=os.setsid) as server:
        said(server, "app: at the gate", stream="stdout")
        os.killpg(server.pid, signal.SIGINT)
        server.assert_ended_well()


def test_a_signal_while_the_application_is_broken_ends_the_parent(project: Project) -> None:
    project.save("one", before="def (\n")
    with project.serve(ready=False) as server:
        said(server, "Waiting for a change.")
        server.stop(signal.SIGINT)


def test_a_stuck_application_does_not_hold_the_end(project: Project) -> None:
    with project.serve() as server, server.connect() as client:
        client.send(request("/stuck"))
        server.wait_line("app: stuck")
        server.stop()
        assert "did not stop within 2 s of being told to: the request GET /stuck" in server.stderr


def test_a_second_signal_ends_all_at_once(project: Project) -> None:
    with project.serve() as server, server.connect() as client:
        client.send(request("/stuck"))
        server.wait_line("app: stuck")
        [child] = children(server.pid)
        server.signal(signal.SIGINT)
        server.signal(signal.SIGINT)
        server.signal(signal.SIGTERM)
        assert server.wait_exit() in (-signal.SIGINT, -signal.SIGTERM)
        assert not Path(f"/proc/{child}").exists()


@pytest.mark.parametrize(
    ("path", "ending"), [("/exit", "ended with exit code 7"), ("/kill", "was killed by SIGSEGV")]
)
def test_a_child_that_dies_is_told_and_the_next_save_starts_another(
    project: Project, path: str, ending: str
) -> None:
    with project.serve(allow=["Fatal Python error"]) as server:
        [child] = children(server.pid)
        with server.connect() as client:
            client.send(request(path))
            client.read_to_any_end()
        said(server, f"Server process [{child}] {ending}. Waiting for a change.")
        answer = server.ask("/")
        assert (answer.status, answer.body) == (503, ENDED)
        project.save("two")
        wait_serving(server, 2)
        assert server.ask("/").body == b"two"


def test_a_child_ends_when_its_parent_was_killed(project: Project) -> None:
    with project.serve() as server:
        server.process.kill()
        server.wait_line("Finished server process")
        assert server.wait_exit() == -signal.SIGKILL


def test_a_unix_socket_stays_and_is_removed_at_the_end(project: Project) -> None:
    path = str(project.folder / "s")
    with project.serve("--uds", path) as server:
        inode = os.stat(path).st_ino
        project.save("two")
        wait_serving(server, 2)
        assert os.stat(path).st_ino == inode
        with Client(path) as client:
            assert client.ask("/").body == b"two"
        server.stop()
        assert not os.path.exists(path)


def test_an_inherited_socket_stays(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number = listener.fileno()
        with project.serve("--fd", str(number), pass_fds=[number]) as server:
            project.save("two")
            wait_serving(server, 2)
            assert server.ask("/").body == b"two"


def test_all_addresses_stay(project: Project) -> None:
    with project.serve("--bind", "127.0.0.1:0", "--bind", "localhost:0") as server:
        before = server.ports
        project.save("two")
        wait_serving(server, 4)
        for port in before:
            with Client(("127.0.0.1", port)) as client:
                assert client.ask("/").body == b"two"


# --- which files


def test_only_files_that_count_start_it_again(project: Project) -> None:
    project.write("env/pyvenv.cfg", "")
    options = ["--reload-include", "*.html", "--reload-exclude", "old_*", "--reload-exclude", "build"]
    project.write("build/made.py", "")
    with project.serve(*options) as server:
        for name in ("data.json", "env/lib.py", ".git/hook.py", "build/made.py", "old_main.py", "main.pyc"):
            project.write(name, "changed")
        project.write("templates/page.html", "changed")
        wait_serving(server, 2)
        server.stop()
        assert server.stderr.count(DETECTED) == 1
        assert f"{DETECTED}'templates/page.html'. Reloading" in server.stderr


def test_several_directories_are_watched_instead_of_the_current_one(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    one, other = (tmp_path_factory.mktemp(name) for name in ("one", "other"))
    with project.serve("--reload-dir", str(one), "--reload-dir", str(other)) as server:
        project.save("two")
        for count, folder in enumerate((one, other), 2):
            (folder / "module.py").write_text("")
            wait_serving(server, count)
        server.stop()
        assert f"these directories: ['{one}', '{other}']" in server.stderr
        assert server.stderr.count(DETECTED) == 2
        assert f"{DETECTED}'{other}/module.py'. Reloading" in server.stderr


def test_an_application_elsewhere_is_watched_there(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    here = tmp_path_factory.mktemp("here")
    options = ("--reload", "--app-dir", str(project.folder))
    with Server("main:app", *options, cwd=here) as server:
        project.save("two")
        wait_serving(server, 2)
        assert server.ask("/").body == b"two"


def test_an_env_file_is_read_again(project: Project) -> None:
    body = "import os; BODY = os.environ['BODY'].encode()\n"
    project.write("settings.env", "BODY=a")
    project.save("x", before=body)
    (project.folder / "main.py").write_text((project.folder / "main.py").read_text().replace("b'x'", "BODY"))
    with project.serve("--env-file", "settings.env") as server:
        assert server.ask("/").body == b"a"
        project.write("settings.env", "BODY=b")
        wait_serving(server, 2)
        assert server.ask("/").body == b"b"


def test_a_burst_of_changes_is_one_start(project: Project) -> None:
    with project.serve("--reload-delay", "1s") as server:
        for number in range(20):
            project.write(f"package/module_{number:02}.py", "")
        wait_serving(server, 2)
        server.stop()
        assert server.stderr.count(DETECTED) == 1
        assert " and 15 more. Reloading..." in server.stderr


def test_code_of_the_same_second_and_length_is_not_taken_from_the_cache(project: Project) -> None:
    def save(value: str) -> None:
        beside = project.folder / "value.new"
        beside.write_text(f"VALUE = {value!r}\n")
        os.utime(beside, (1_000_000_000, 1_000_000_000))
        beside.rename(project.folder / "value.py")

    save("a")
    project.save("x", before="from value import VALUE\n")
    main = project.folder / "main.py"
    main.write_text(main.read_text().replace("b'x'", "VALUE.encode()"))
    with project.serve(env={"PYTHONDONTWRITEBYTECODE": ""}) as server:
        assert server.ask("/").body == b"a"
        assert list(project.folder.glob("__pycache__/value.*"))
        save("b")
        wait_serving(server, 2)
        assert server.ask("/").body == b"b"


def test_polling_finds_changes_too(project: Project) -> None:
    with project.serve("--reload-poll") as server:
        assert "using polling" in server.stderr
        project.save("two")
        wait_serving(server, 2)
        assert server.ask("/").body == b"two"


def limits_can_be_set() -> bool:
    if sys.platform != "linux":
        return False
    probe = ["unshare", "-Ur", "sh", "-c", "echo 1 > /proc/sys/user/max_inotify_watches"]
    try:
        return subprocess.run(probe, capture_output=True).returncode == 0
    except OSError:
        return False


@pytest.mark.parametrize("limit", ["watches", "instances"])
def test_without_the_systems_word_changes_are_looked_for(project: Project, limit: str) -> None:
    if not limits_can_be_set():
        pytest.skip("needs a user namespace of its own")
    for number in range(8):
        project.write(f"package_{number}/module.py", "")
    set_limit = f"echo {2 if limit == 'watches' else 0} > /proc/sys/user/max_inotify_{limit}"
    below = ["unshare", "-Ur", "sh", "-c", f'{set_limit} && exec "$@"', "sh"]
    with project.serve(below=below) as server:
        line = server.wait_line("Changes are looked for twice a second")
        assert f"max_user_{limit}" in line
        project.save("two")
        wait_serving(server, 2)
        assert server.stderr.count("looked for") == 1


# --- while there is no application


@pytest.fixture
def without_application(project: Project) -> Project:
    project.save("one", before="def (\n")
    return project


def in_place_of_the_application(project: Project, use: Callable[[Server, int], None]) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        number, port = listener.fileno(), listener.getsockname()[1]
        with project.serve("--fd", str(number), pass_fds=[number], ready=False) as server:
            said(server, "Waiting for a change.")
            use(server, port)


def test_a_head_is_answered_without_a_body(without_application: Project) -> None:
    def use(_: Server, port: int) -> None:
        with Client(("127.0.0.1", port)) as client:
            answer = client.ask("/", method="HEAD")
            assert (answer.status, answer.header("connection")) == (503, "close")
            assert client.read_to_end() == b""

    in_place_of_the_application(without_application, use)


def test_an_upload_is_answered_and_not_reset(without_application: Project) -> None:
    def use(_: Server, port: int) -> None:
        with Client(("127.0.0.1", port)) as client:
            client.send(request("/", method="POST", body=b"x" * 1_000_000))
            assert client.read_response().body == FAILED

    in_place_of_the_application(without_application, use)


@pytest.mark.parametrize("words", [b"", b"GET / HT"], ids=["silent", "slow"])
def test_many_clients_that_ask_nothing_keep_nobody_out(without_application: Project, words: bytes) -> None:
    def use(server: Server, port: int) -> None:
        clients = []
        for _ in range(200):
            clients.append(Client(("127.0.0.1", port)))
            clients[-1].send(words)
        with Client(("127.0.0.1", port)) as client:
            assert client.ask("/").status == 503
        for each in clients:
            each.close()
        server.stop()

    in_place_of_the_application(without_application, use)


def test_who_has_asked_nothing_yet_may_come_again(without_application: Project) -> None:
    def use(server: Server, port: int) -> None:
        with Client(("127.0.0.1", port)) as early, Client(("127.0.0.1", port)) as witness:
            assert witness.ask("/").status == 503
            without_application.save("two")
            early.assert_closed()
            wait_serving(server, 1)
            with Client(("127.0.0.1", port)) as client:
                assert client.ask("/").body == b"two"

    in_place_of_the_application(without_application, use)


def test_traffic_meets_no_refused_connection_through_many_reloads(project: Project) -> None:
    over = threading.Event()
    refused: list[Exception] = []

    def keep_asking(port: int) -> None:
        while not over.is_set():
            try:
                with Client(("127.0.0.1", port)) as client:
                    client.try_send(request("/", headers=[("Connection", "close")]))
                    client.read_to_any_end()
            except ConnectionRefusedError as error:
                refused.append(error)

    with project.serve() as server:
        asking = threading.Thread(target=keep_asking, args=(server.port,))
        asking.start()
        try:
            for count in range(2, 6):
                project.save(f"body {count}", before="def (\n" if count % 2 else "")
                if count % 2:
                    said(server, "Waiting for a change.", count=count // 2)
                else:
                    wait_serving(server, 1 + count // 2)
        finally:
            over.set()
            asking.join()
    assert refused == []


# --- what is refused


def refusal(*words: str, cwd: Path) -> tuple[int, str]:
    command = [sys.executable, "-m", "bridgehead", "main:app", "--port", "0", *words]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=30)
    return done.returncode, done.stderr


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    code, told = refusal("--reload", "--reload-dir", "nowhere", cwd=tmp_path)
    assert code == 3
    assert "--reload-dir: there is no directory 'nowhere'" in told


def test_a_taken_port_ends_the_start(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        code, told = refusal("--reload", "--port", port, cwd=project.folder)
    assert code == 3
    assert "is already in use" in told


def test_settings_may_say_it_and_a_flag_may_take_it_back(project: Project) -> None:
    project.write("pyproject.toml", "[tool.bridgehead]\nreload = true\n")
    with Server("main:app", cwd=project.folder) as server:
        assert "Started reloader process" in server.stderr
    with Server("main:app", "--no-reload", cwd=project.folder) as server:
        assert "Started reloader process" not in server.stderr
    table = subprocess.run(
        [sys.executable, "-m", "bridgehead", "--print-config"],
        cwd=project.folder,
        capture_output=True,
        text=True,
    ).stdout
    assert json.loads(re.findall(r"^reload +(\w+)", table, re.M)[0]) is True


# --- from code

PROGRAM = """
import bridgehead

if __name__ == "__main__":
    print("program: begins", flush=True)
    bridgehead.run({app}, port=0, reload=True)
    print("program: goes on", flush=True)
"""


def program(project: Project, app: str, **settings: object) -> Server:
    project.write("program.py", PROGRAM.format(app=app))
    return Server("", cwd=project.folder, module="program", **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run_reloads_and_goes_on_after_a_signal(project: Project, number: signal.Signals) -> None:
    with program(project, "'main:app'") as server:
        project.save("two")
        wait_serving(server, 2)
        assert server.ask("/").body == b"two"
        server.stop(number)
        assert server.stdout.count("program: begins") == 1
        assert "program: goes on" in server.stdout
        assert "Stopping reloader process" in server.stderr


def test_run_refuses_to_reload_an_object(project: Project) -> None:
    with program(project, "print", ready=False, allow=["Traceback"]) as server:
        assert server.wait_exit() == 3
        assert "reload needs the words that name the application" in server.stderr
        assert 'hint: give them instead of the object: "module:app"' in server.stderr
