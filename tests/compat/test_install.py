"""`bridgehead.compat.install()`: programs that say `import uvicorn`, and those they start."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a program to its end, after `bridgehead.compat.install()`."""

    def run(program: str, *words: str, timeout: float = 50) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "program.py"
        file.write_text("from bridgehead import compat\ncompat.install()\n" + program)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return subprocess.run(
            [sys.executable, str(file), *words],
            cwd=tmp_path,
            env=clean,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return run


APP = """
async def app(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError(scope["type"])
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": b"hello"})
"""
ASK = """
import urllib.request


def ask(port):
    return urllib.request.urlopen(f"http://127.0.0.1:{port}", timeout=20).read()
"""


def test_a_module_is_one_under_both_names(run: Run) -> None:
    done = run("""
import uvicorn, uvicorn.config, uvicorn.main
import bridgehead.compat.uvicorn as ours
from uvicorn.main import Server
assert uvicorn is ours and uvicorn.Server is Server is ours.Server
assert uvicorn.config.__name__ == "bridgehead.compat.uvicorn.config"
assert uvicorn.main is ours.main and callable(uvicorn.main)
try:
    import uvicorn.nothing
except ModuleNotFoundError as error:
    print(error.name)
""")
    assert done.stdout == "uvicorn.nothing\n", done.stderr


def test_a_program_that_calls_run_serves_and_ends_as_under_uvicorn(run: Run) -> None:
    program = (
        ASK
        + APP
        + """
import os, signal, socket, threading
import uvicorn

with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]


class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets=sockets)
        threading.Thread(target=self.tell).start()

    def tell(self):
        print(ask(port).decode())
        os.kill(os.getpid(), signal.SIGINT)


uvicorn.main.Server = Server
config = uvicorn.Config(app, "127.0.0.1", port, log_level="info")
try:
    Server(config).run()
except KeyboardInterrupt:
    print("interrupted")
"""
    )
    done = run(program)
    assert done.stdout.splitlines()[-1] == "interrupted", done.stderr
    assert "hello" in done.stdout
    assert "Uvicorn running on http://127.0.0.1:" in done.stderr


def test_handle_exit_may_be_replaced_on_the_class_as_event_streams_do(run: Run) -> None:
    done = run(
        APP
        + """
import os, signal, threading, time
from uvicorn.main import Server
import uvicorn

before = Server.handle_exit


def replaced(self, sig, frame):
    print("told of", signal.Signals(sig).name)
    before(self, sig, frame)


Server.handle_exit = replaced
server = Server(uvicorn.Config(app, port=0, log_config=None))
server.on_started = None


async def tick(counter):
    if counter == 1:
        signal.raise_signal(signal.SIGTERM)
    return server.should_exit


server.on_tick = tick
signal.signal(signal.SIGTERM, lambda *_: print("raised again"))
server.run()
"""
    )
    assert done.stdout.splitlines() == ["told of SIGTERM", "raised again"], done.stderr


def test_a_server_that_a_replaced_run_never_starts_is_a_failed_start(run: Run) -> None:
    """As under uvicorn, which looks at `started` of the one that it made."""
    done = run(
        APP
        + """
import uvicorn


def replaced(self, sockets=None):
    print("nothing is started", flush=True)


uvicorn.Server.run = replaced
uvicorn.run(app, port=0)
"""
    )
    assert (done.returncode, done.stdout) == (3, "nothing is started\n"), done.stderr


def test_uvicorn_that_was_imported_before_is_warned_of_and_our_own_is_not(run: Run) -> None:
    done = run("""
import subprocess, sys

other = "import types; sys.modules['uvicorn'] = types.ModuleType('uvicorn')"
for before in ("pass", "import uvicorn", other):
    program = f"import sys; {before}; from bridgehead import compat; compat.install(); compat.install()"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stderr
    print(told.count("uvicorn itself was imported before compat.install()"), told.count("RuntimeWarning"))
""")
    assert done.stdout.splitlines() == ["0 0", "0 0", "1 1"], done.stderr


def test_a_callback_is_told_that_the_server_lives(run: Run) -> None:
    done = run(
        APP
        + """
import uvicorn
told = []


async def notify():
    told.append(True)
    server.should_exit = True


config = uvicorn.Config(app, port=0, callback_notify=notify, timeout_notify=0, log_config=None)
server = uvicorn.Server(config)
server.run()
print(len(told))
"""
    )
    assert done.stdout == "1\n", done.stderr


def test_a_server_without_a_lifespan_takes_the_class_for_that(run: Run) -> None:
    done = run(
        APP
        + """
import uvicorn
from uvicorn.lifespan.off import LifespanOff


class Server(uvicorn.Server):
    async def on_tick(self, counter):
        return True


config = uvicorn.Config(app, port=0)
config.lifespan_class = LifespanOff
Server(config).run()
print("ended")
"""
    )
    assert done.stdout == "ended\n", done.stderr
    assert "application startup" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [[], ["--workers", "2"], ["--reload"], ["--reload", "--workers", "2"]],
    ids=["one", "two", "reload", "two of a reload"],
)
def test_programs_find_the_line_that_says_where_it_runs(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "served.py").write_text(APP)
    command = [sys.executable, "-m", "bridgehead.compat", "uvicorn", "served:app", "--port", "0", *words]
    child = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        assert child.stderr is not None
        said = next((line for line in child.stderr if "running on" in line), "")
        assert "Uvicorn running on http://127.0.0.1:" in said
    finally:
        child.terminate()
        child.communicate(timeout=30)


def test_the_line_may_be_a_subclasss(run: Run) -> None:
    done = run(
        APP
        + """
import uvicorn


class Server(uvicorn.Server):
    def _log_started_message(self, listeners):
        print("mine", listeners[0].getsockname()[0])

    async def on_tick(self, counter):
        return True


Server(uvicorn.Config(app, port=0)).run()
"""
    )
    assert done.stdout == "mine 127.0.0.1\n", done.stderr
    assert "running on" not in done.stderr


def test_a_socket_that_is_bound_by_a_configuration_is_told_of_as_uvicorns(run: Run) -> None:
    done = run("""
import uvicorn

uvicorn.Config("served:app", port=0).bind_socket().close()
""")
    assert "Uvicorn running on http://127.0.0.1:" in done.stderr


def test_a_server_whose_application_does_not_start_never_says_that_it_runs(run: Run) -> None:
    done = run("""
import uvicorn


async def app(scope, receive, send):
    await receive()
    await send({"type": "lifespan.startup.failed", "message": "no database"})


class Server(uvicorn.Server):
    def __setattr__(self, name, value):
        if name == "started" and value:
            print("said to have started")
        super().__setattr__(name, value)


server = Server(uvicorn.Config(app, port=0))
try:
    server.run()
except SystemExit as end:
    print(end.code, server.started)
""")
    assert done.stdout == "3 False\n", done.stderr
    assert "Application startup failed. Exiting." in done.stderr
    assert "running on" not in done.stderr


def test_a_child_that_runs_uvicorn_as_a_module_is_reached(run: Run, tmp_path: Path) -> None:
    (tmp_path / "served.py").write_text(APP)
    done = run(
        ASK
        + """
import re, subprocess, sys

words = [sys.executable, "-m", "uvicorn", "served:app", "--port", "0"]
child = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
for line in child.stderr:
    if "running on" in line:
        print(line.split()[1], ask(int(re.search(r":(\\d+) ", line)[1])).decode())
        child.terminate()
child.wait()
"""
    )
    assert done.stdout.splitlines()[-1] == "Uvicorn hello", done.stderr


def test_sockets_that_a_program_has_bound_are_served_by_several_processes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "served.py").write_text(APP)
    done = run(
        ASK
        + """
import os, signal, threading
import uvicorn
from uvicorn.supervisors import Multiprocess


class Tell(Multiprocess):
    def init_processes(self):
        super().init_processes()
        threading.Thread(target=self.tell).start()

    def tell(self):
        for process in self.processes:
            print(process.wait_until_ready(30))
        print({ask(port) for _ in range(20)})
        self.should_exit.set()


def main():
    config = uvicorn.Config("served:app", port=0, workers=2)
    with config.bind_socket() as sock:
        global port
        port = sock.getsockname()[1]
        Tell(config, sockets=[sock]).run()


if __name__ == "__main__":
    main()
"""
    )
    assert [line for line in done.stdout.splitlines() if "GET" not in line] == [
        "True",
        "True",
        "{b'hello'}",
    ], done.stderr
    assert "Traceback" not in done.stderr


LOOKS = """
import gc, os, uvicorn

async def app(scope, receive, send):
    if scope["type"] != "lifespan":
        return
    await receive()
    [server] = [each for each in gc.get_objects() if isinstance(each, uvicorn.Server)]
    assert callable(server.config.loaded_app)
    await send({"type": "lifespan.startup.complete"})
    server.should_exit = True
    await receive()
    os.write(2, b"app: told to end\\n")
    await send({"type": "lifespan.shutdown.complete"})
"""


@pytest.mark.parametrize("options", ["workers=2", "reload=True", "workers=2, reload=True"])
def test_who_looks_for_a_server_among_all_objects_finds_the_one_that_serves_it(
    run: Run, tmp_path: Path, options: str
) -> None:
    (tmp_path / "served.py").write_text(LOOKS)
    program = f"""
import os, signal, sys, threading, uvicorn

def stop():
    for line in open(reads, closefd=False):
        os.write(1, line.encode())
        if line == "app: told to end\\n":
            os.kill(os.getpid(), signal.SIGTERM)

reads, writes = os.pipe()
os.dup2(writes, 2)
threading.Thread(target=stop, daemon=True).start()
uvicorn.run("served:app", port=0, {options})
"""
    assert "app: told to end" in run(program).stdout


def test_a_command_is_run_with_bridgehead_in_uvicorns_place(tmp_path: Path) -> None:
    (tmp_path / "tell.py").write_text("import sys, uvicorn\nprint(uvicorn.__spec__.name, sys.argv[1:])\n")
    script = tmp_path / "tell"
    script.write_text(f"#!{sys.executable}\n" + (tmp_path / "tell.py").read_text())
    script.chmod(0o755)
    environ = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    for words in (["-m", "tell", "--a", "b"], ["tell", "--a", "b"]):
        command = [sys.executable, "-m", "bridgehead.compat", *words]
        done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=30)
        assert done.stdout == "bridgehead.compat.uvicorn ['--a', 'b']\n", done.stderr


@pytest.mark.parametrize("error", ["ValueError('no such colour')", "SyntaxError('in what it imports')"])
def test_what_a_program_raises_is_its_own_with_its_traceback(tmp_path: Path, error: str) -> None:
    script = tmp_path / "tell"
    script.write_text(f"#!{sys.executable}\nraise {error}\n")
    script.chmod(0o755)
    command = [sys.executable, "-m", "bridgehead.compat", "tell"]
    environ = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "is no script of Python's" not in done.stderr


def test_a_command_of_another_language_is_refused_with_a_sentence(tmp_path: Path) -> None:
    script = tmp_path / "shell"
    script.write_text("#!/bin/sh\necho hello | cat\n")
    script.chmod(0o755)
    command = [sys.executable, "-m", "bridgehead.compat", "shell"]
    environ = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert "is no script of Python's" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_command_of_the_environment_is_found_though_that_is_not_on_path(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bridgehead.compat", "bridgehead", "--version"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PATH": "/nowhere"}, capture_output=True, text=True, timeout=30
    )
    assert done.stdout.startswith("Running bridgehead"), done.stderr


def test_a_program_is_run_by_its_path_and_finds_what_lies_beside_it_alone(tmp_path: Path) -> None:
    for name, said in (("program", "beside it"), ("elsewhere", "where it was called from")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "beside.py").write_text(f"WHERE = {said!r}\n")
    (tmp_path / "program" / "tell.py").write_text(
        "import sys, beside, uvicorn\nprint(beside.WHERE, uvicorn.__spec__.name, sys.argv[1:])\n"
    )
    command = [sys.executable, "-m", "bridgehead.compat", "../program/tell.py", "--a"]
    cwd = tmp_path / "elsewhere"
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=30)
    assert done.stdout == "beside it bridgehead.compat.uvicorn ['--a']\n", done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["no-such-command"], "there is no command 'no-such-command'"),
        (["-m"], "name a module"),
        (["-m", "no_such_module"], "there is no module 'no_such_module'"),
        (["-m", "no_such.module"], "there is no module 'no_such.module'"),
        ([], "usage:"),
    ],
)
def test_a_command_that_is_not_there_is_told(words: list[str], sentence: str) -> None:
    command = [sys.executable, "-m", "bridgehead.compat", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode != 0
    assert sentence in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("call", ["run", "Config"])
def test_an_argument_that_nobody_knows_is_named_with_who_does_not(run: Run, call: str) -> None:
    done = run(f"import uvicorn\nuvicorn.{call}('main:app', nosuch=1)\n")
    assert f"TypeError: {call}(): got an unexpected keyword argument 'nosuch'" in done.stderr


def test_what_import_uvicorn_brings_is_there_by_its_attributes(run: Run) -> None:
    done = run("""
import uvicorn

for module in (
    uvicorn.config, uvicorn.server, uvicorn.importer, uvicorn.logging, uvicorn.middleware.proxy_headers,
    uvicorn.middleware.wsgi, uvicorn.supervisors.basereload, uvicorn.supervisors.statreload,
    uvicorn.lifespan.on, uvicorn.loops.auto, uvicorn.protocols.utils, uvicorn.protocols.http.h11_impl,
    uvicorn.protocols.websockets.auto, uvicorn._types, uvicorn._compat, uvicorn._subprocess,
):
    assert module.__name__.startswith("bridgehead.compat.uvicorn."), module
import uvicorn.logging as named
from uvicorn import logging
assert named is logging is uvicorn.logging
assert not hasattr(uvicorn, "nothing") and not hasattr(uvicorn.loops, "nothing")
""")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_program_sees_of_itself_what_it_sees_under_python(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "program.py").write_text("""
import multiprocessing, sys

def child():
    print("child", __file__)

if __name__ == "__main__":
    print(sys.argv, __file__, sys.path[0], __spec__, __package__, __builtins__.__name__)
    print(sys.modules["__main__"].__file__, sys._getframe().f_code.co_filename, flush=True)
    process = multiprocessing.get_context("spawn").Process(target=child)
    process.start()
    process.join()
""")
    program = ["inside/program.py", "--word"]
    plain, ours = (
        subprocess.run([sys.executable, *words, *program], cwd=tmp_path, capture_output=True, text=True)
        for words in ([], ["-m", "bridgehead.compat"])
    )
    assert (ours.stdout, ours.stderr, ours.returncode) == (plain.stdout, "", 0)
    assert plain.stdout.startswith("['inside/program.py', '--word'] /")
