"""The command: what it makes of words, and how it ends when it cannot start."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from harness import Server

from bridgehead.cli import main, read_config
from bridgehead.command_line import read_command_line
from bridgehead.errors import StartError
from bridgehead.settings import read_settings
from bridgehead.sources import strays

APP = "async def app(scope, receive, send): ...\n"


def serve(*words: str, cwd: Path, **environ: str) -> "subprocess.CompletedProcess[str]":
    ours = ("BRIDGEHEAD_", "UVICORN_", "PORT")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    command = [sys.executable, "-m", "bridgehead", *words]
    return subprocess.run(command, cwd=cwd, env=clean | environ, capture_output=True, text=True, timeout=30)


def refused(*words: str, **environ: str) -> StartError:
    with pytest.raises(StartError) as problem:
        read_config(words, environ)
    return problem.value


def test_flags_outrank_the_environment_and_ours_outranks_uvicorns() -> None:
    environ = {
        "UVICORN_PORT": "1",
        "BRIDGEHEAD_PORT": "2",
        "UVICORN_HOST": "::",
        "UVICORN_BACKLOG": "7",
        "BRIDGEHEAD_ROOT_PATH": "/a",
    }
    config = read_config(["main:app", "--port", "3"], environ)
    assert (config.app, config.port, config.host, config.backlog) == ("main:app", 3, "::", 7)
    assert read_config([], environ).port == 2
    assert read_config([], environ).root_path == "/a"


def test_every_kind_of_option_is_understood() -> None:
    words = "x --header A:1 --header=b:\t2 --no-access-log --use-colors --factory --log-level DEBUG --fd 0"
    config = read_config(words.split(" "), {})
    assert config.headers == ((b"a", b"1"), (b"b", b"2"))
    assert (config.access_log, config.use_colors, config.factory) == (False, True, True)
    assert (config.log_level, config.fd) == ("debug", 0)


def test_the_target_may_come_from_the_environment() -> None:
    assert read_config([], {"UVICORN_APP": "main:app"}).app == "main:app"


@pytest.mark.parametrize(
    ("words", "environ", "expected"),
    [
        ("", {}, ["127.0.0.1:8000"]),
        ("--host [::1] --port 9", {}, ["[::1]:9"]),
        ("--bind :80 --bind unix:/x --bind fd://3", {}, [":80", "unix:/x", "fd://3"]),
        ("--bind :80", {"UVICORN_PORT": "9", "BRIDGEHEAD_UDS": "/x"}, [":80"]),
        ("--port 9", {"BRIDGEHEAD_BIND": ":80"}, ["127.0.0.1:9"]),
        ("--port 9", {"BRIDGEHEAD_HOST": "::", "UVICORN_UDS": "/x"}, ["[::]:9"]),
        ("", {"BRIDGEHEAD_PORT": "9", "UVICORN_FD": "3"}, ["127.0.0.1:9"]),
        ("", {"BRIDGEHEAD_BIND": "127.0.0.1:1 [::1]:2"}, ["127.0.0.1:1", "[::1]:2"]),
        ("--uds /x --host 0.0.0.0", {}, ["unix:/x"]),
        ("--uds /x", {"UVICORN_FD": "3"}, ["unix:/x"]),
        ("--fd 3", {"UVICORN_UDS": "/x"}, ["fd://3"]),
    ],
)
def test_the_highest_source_says_where_to_listen(
    words: str, environ: dict[str, str], expected: list[str]
) -> None:
    assert [str(each) for each in read_config(words.split(), environ).addresses()] == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--bind :80 --port 9", "--bind and --port say different things about where to listen"),
        ("--bind :80 --uds /x", "--bind and --uds say different things about where to listen"),
        ("--uds /x --fd 3", "--uds and --fd say different things about where to listen"),
    ],
)
def test_flags_that_contradict_each_other_are_refused(words: str, message: str) -> None:
    assert refused(*words.split()).message == message


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ("--prot 3", "there is no option '--prot'", "did you mean `--port`?"),
        ("--no-acces-log", "there is no option '--no-acces-log'", "did you mean `--no-access-log`?"),
        ("--spew", "there is no option '--spew'", "see `serve --help` for the options of this version"),
        (
            "--daemon",
            "there is no option '--daemon'",
            "leave it out: let a service manager keep the process",
        ),
        (
            "--limit-request-body 1",
            "there is no option '--limit-request-body'",
            "did you mean `--limit-body`?",
        ),
        (
            "--access-log-formt x",
            "there is no option '--access-log-formt'",
            "did you mean `--access-log-format`?",
        ),
        ("--hos=x", "there is no option '--hos'", "did you mean `--host`?"),
        ("--xyzzy", "there is no option '--xyzzy'", "see `serve --help` for the options of this version"),
        ("-- a --check", "'--check' stands behind `--`, where no word is an option", "write it before"),
        ("a b", "unexpected argument 'b'", "one TARGET is enough; options begin with --"),
        ("--port", "--port: expected one argument", "see `serve --help`"),
        (
            "--port x",
            "--port: 'x' is not a whole number from 0 to 65535",
            "this is for: port to listen on; 0 takes a free one, and prints it",
        ),
        ("--port 70000 --port 0", "--port: '70000' is not a whole number from 0 to 65535", None),
        ("--uds=", "--uds: '' is no path", "name a file, or leave it out"),
        (
            "--ssl-keyfil=x",
            "there is no option '--ssl-keyfil'",
            "did you mean `--ssl-keyfile`?",
        ),
        (
            "--ssl-min-version TLSv1.1",
            "--ssl-min-version: TLS 1.1 cannot be spoken here: it is broken, and rustls does not have it",
            "leave it out for TLS 1.2 and 1.3; 1.3 is 1.3 alone",
        ),
        ("--ssl-min-version 2", "--ssl-min-version: '2' is not one of 1.2, 1.3", None),
        ("--workers x", "--workers: 'x' is not a whole number from 0 to 512, nor 'auto'", None),
        (
            "--loop uvlop",
            "--loop: 'uvlop' is not one of auto, asyncio, uvloop, none, nor module:factory",
            "did you mean `uvloop`?",
        ),
        (
            "--loop nope",
            "--loop: 'nope' is not one of auto, asyncio, uvloop, none, nor module:factory",
            "or name a factory: module:function",
        ),
        (
            "--static-fallback index.html",
            "--static-fallback: 'index.html' is not a path of requests and a place",
            "write it as /=index.html",
        ),
        (
            "--static dist",
            "--static: 'dist' is not a path of requests and a place",
            "write it as /static=directory",
        ),
        (
            "--http mine:Protocol",
            "--http: 'mine:Protocol' is a protocol of Python's, and HTTP is spoken in Rust here",
            "leave it out; what it did belongs into a middleware, or to an option of docs/settings.md",
        ),
        (
            "--timeout-keep-alive nan",
            "--timeout-keep-alive: 'nan' is not a time from 0 up",
            None,
        ),
        (
            "--host *",
            "--host: '*' is not a host",
            "write 0.0.0.0 for every IPv4 address, :: for IPv6 as well",
        ),
        ("--bind *:80", "--bind: '*:80' is not an address", "write :80 for every address"),
        ("--bind x", "--bind: 'x' is not an address", None),
        ("--bind [::1]", "--bind: '[::1]' is not an address", "add a port: [::1]:8000"),
        (
            "--host 127.0.0.1:80",
            "--host: '127.0.0.1:80' is a host and a port",
            "give the port with --port 80, or both with --bind 127.0.0.1:80",
        ),
        (
            "--host [::1]:80",
            "--host: '[::1]:80' is a host and a port",
            "give the port with --port 80, or both with --bind [::1]:80",
        ),
    ],
)
def test_a_bad_option_names_the_next_step(words: str, message: str, hint: str | None) -> None:
    problem = refused(*words.split())
    assert problem.message == message
    assert hint is None or problem.hint == hint


def test_a_bad_variable_is_named() -> None:
    assert refused("x", UVICORN_LOOP="rloop").message.startswith("UVICORN_LOOP: ")
    assert refused("x", BRIDGEHEAD_HEADERS="a").hint.endswith(
        "in the environment without a blank, as `Name:value`"
    )


@pytest.mark.parametrize(
    ("words", "environ", "told"),
    [
        ("--uds /x", {}, []),
        ("--uds /x --host ::1", {}, ["--host is passed over, since --uds says where to listen."]),
        ("--port 1 --fd 3", {}, ["--port is passed over, since --fd says where to listen."]),
        ("--uds /x", {"PORT": "9", "UVICORN_HOST": "::1"}, []),
        (
            "",
            {"UVICORN_UDS": "/x", "UVICORN_PORT": "1"},
            ["UVICORN_PORT is passed over, since UVICORN_UDS says where to listen."],
        ),
        ("--reload-dir x", {}, ["--reload-dir does nothing without --reload."]),
        (
            "--limit-max-requests-jitter 5",
            {},
            ["--limit-max-requests-jitter does nothing without --limit-max-requests."],
        ),
        ("--worker-lifetime 0 --worker-lifetime-jitter 0", {}, []),
        ("--reload --worker-max-rss 1G", {}, ["--worker-max-rss does nothing with --reload."]),
        ("--ssl-ciphers x", {}, ["--ssl-ciphers does nothing without --ssl-certfile."]),
        ("--ssl-certfile=", {}, ["--ssl-certfile is empty: clients are let in without TLS."]),
        (
            "--ssl-certfile x --ssl-ca-certs y --ssl-crl z",
            {},
            [
                f"--ssl-{name} does nothing without --ssl-cert-reqs: no client is asked."
                for name in ("ca-certs", "crl")
            ],
        ),
        ("--ssl-certfile x --ssl-ca-certs y --ssl-crl z --ssl-cert-reqs 1", {}, []),
        (
            "--ssl-certfile x --ssl-self-signed",
            {},
            ["--ssl-self-signed beside --ssl-certfile is shown only for names that no other has."],
        ),
        (
            "--no-access-log --access-log-format {target}",
            {},
            ["--access-log-format does nothing with --no-access-log."],
        ),
        (
            "--access-log-format {request_id}",
            {},
            ["--access-log-format: {request_id} is - in every line without --request-id."],
        ),
        ("--access-log-format {request_id} --request-id", {}, []),
        (
            "--log-format json --log-config log.json",
            {},
            ["--log-format does nothing with --log-config, whose formatters write the lines."],
        ),
        *(
            (f"{word} 5", {}, [f"{word} does nothing without --static."])
            for word in ("--static-max-age", "--limit-static")
        ),
        *(
            (f"{word} {value}", {}, [f"{word} does nothing without --compress."])
            for word, value in (("--compress-type", "text/*"), ("--compress-min-size", "10"))
        ),
        ("--static /= --limit-static 5", {}, ["--limit-static does nothing without --static."]),
        ("--static /=/ --static-max-age 5 --limit-static 5", {}, []),
        ("--compress --compress-type text/* --compress-min-size 10", {}, []),
        ("--no-compress --compress-type text/*", {}, []),
        (
            "",
            {"BRIDGEHEAD_COMPRESS_MIN_SIZE": "9"},
            ["BRIDGEHEAD_COMPRESS_MIN_SIZE does nothing without --compress."],
        ),
        (
            "--static /a=/ --static-fallback /a=nowhere/at-all.html",
            {},
            [
                "--static-fallback: there is no 'nowhere/at-all.html' in '/';"
                " until there is, nothing stands for a page."
            ],
        ),
        ("--reload-delay 1 --reload", {}, []),
        ("--reload-dir x --no-reload", {}, []),
        ("", {"BRIDGEHEAD_RELOAD_DELAY": "1"}, []),
        ("--root-path /api", {}, []),
        (
            "--root-path api/",
            {},
            ["--root-path 'api/' goes before each path as it is: 'api//items'. Did you mean '/api'?"],
        ),
        ("--root-path /", {}, ["--root-path '/' goes before each path as it is: '//items'. Leave it out."]),
        ("--port 1 --port 2", {}, ["--port is given again: '2' counts, '1' does not."]),
    ],
)
def test_what_was_set_and_does_nothing_is_told(words: str, environ: dict[str, str], told: list[str]) -> None:
    line = read_command_line(words.split())
    settings = read_settings(line.given, environ, Path("/"), line.config)
    assert [*line.doubts, *settings.doubts()] == told


@pytest.mark.skipif(sys.platform != "linux", reason="no other system says how many may wait")
def test_a_backlog_that_the_kernel_cuts_is_told() -> None:
    most = int(Path("/proc/sys/net/core/somaxconn").read_text())
    line = read_command_line(["app:app", "--backlog", "2147483647"])
    settings = read_settings(line.given, {}, Path("/"), line.config)
    told = [f"--backlog is cut to {most} by the kernel, which net.core.somaxconn decides."]
    assert [*line.doubts, *settings.doubts()] == told


def test_what_was_set_and_does_nothing_is_a_warning() -> None:
    with Server("wire_app:app", "--reload-poll") as server:
        server.wait_line("WARNING:  --reload-poll/--no-reload-poll does nothing without --reload.")


def test_a_bad_option_ends_with_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["x", "--prot", "1"])
    assert end.value.code == 3
    expected = "bridgehead: error: there is no option '--prot'\n  hint: did you mean `--port`?\n"
    assert capsys.readouterr().err == expected


def test_help_names_every_group(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    shown = capsys.readouterr().out
    for heading in (
        "Application:",
        "Address:",
        "Responses:",
        "Timeouts:",
        "Logs:",
        "Configuration:",
        "Others:",
    ):
        assert f"\n{heading}\n" in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_the_version_reads_as_uvicorns(tmp_path: Path) -> None:
    (tmp_path / "bridgehead-0.1.0.dist-info").mkdir()
    done = serve("--version", cwd=tmp_path)
    implementation = sys.implementation.name.replace("cpython", "CPython")
    python = f"{implementation} {'.'.join(map(str, sys.version_info[:3]))}"
    assert done.stdout == f"Running bridgehead 0.1.0 with {python} on {os.uname().sysname}\n"
    assert (done.returncode, done.stderr) == (0, "")


def test_the_version_loads_nothing_that_serves(tmp_path: Path) -> None:
    heavy = {"asyncio", "logging", "importlib.metadata", "difflib", "ssl", "bridgehead.sockets", "traceback"}
    program = (
        "import sys\nfrom bridgehead.cli import main\n"
        "try: main(['--version'])\n"
        f"except SystemExit: print(sorted({heavy!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=30
    )
    assert done.stdout.splitlines()[1] == "[]", done.stderr


def test_a_broken_application_is_shown_once_the_port_is_known_to_be_free(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import nothing_like_it\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = serve("main:app", "--port", str(taken.getsockname()[1]), cwd=tmp_path)
    assert done.returncode == 3
    assert "nothing_like_it" not in done.stderr
    assert "is already in use" in done.stderr
    done = serve("main:app", "--port", "0", cwd=tmp_path)
    assert done.returncode == 3
    assert "main imports 'nothing_like_it', which is not installed" in done.stderr
    assert "in use" not in done.stderr
    assert done.stderr.count("File ") == 1
    assert done.stdout == ""


def test_a_stray_variable_is_one_warning_line(tmp_path: Path) -> None:
    done = serve("missing:app", cwd=tmp_path, BRIDGEHEAD_PROT="1")
    first = done.stderr.splitlines()[0]
    assert first == "WARNING:  BRIDGEHEAD_PROT is not a setting; did you mean BRIDGEHEAD_PORT?"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "closed", [(0,), (1,), (2,), (0, 1, 2)], ids=["stdin", "stdout", "stderr", "all three"]
)
def test_a_closed_standard_descriptor_is_no_socket(tmp_path: Path, closed: tuple[int, ...]) -> None:
    (tmp_path / "main.py").write_text(
        "import os, signal, sys\n"
        "async def app(scope, receive, send):\n"
        "    await receive()\n"
        "    print('said'); print('said', file=sys.stderr, flush=True)\n"
        "    found = [os.readlink(f'/proc/self/fd/{number}') for number in range(3)]\n"
        "    open('found', 'w').write(' '.join(found))\n"
        "    await send({'type': 'lifespan.startup.complete'})\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    await receive()\n"
        "    await send({'type': 'lifespan.shutdown.complete'})\n"
    )
    shell = "exec " + " ".join(f"{number}>&-" for number in closed) + '; exec "$@"'
    command = ["sh", "-c", shell, "sh", sys.executable, "-m", "bridgehead", "main:app", "--port", "0"]
    done = subprocess.run(
        command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0, done.stderr
    found = (tmp_path / "found").read_text().split()
    assert [found[number] for number in closed] == ["/dev/null"] * len(closed)
    assert "Traceback" not in done.stderr


def test_a_failed_start_without_stderr_ends_with_code_3(tmp_path: Path) -> None:
    command = ["sh", "-c", 'exec 2>&-; exec "$@"', "sh", sys.executable, "-m", "bridgehead", "missing:app"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (3, "")


@pytest.mark.parametrize(
    "name", ["Connection", "Keep-Alive", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade"]
)
def test_a_header_of_one_connection_is_refused(name: str) -> None:
    assert refused("x", "--header", f"{name}: x").message == f"--header: header {name!r} cannot be set"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("VERSION", "UVICORN_VERSION is a setting of uvicorn's that is not there yet; it is ignored"),
        ("PROT", "UVICORN_PROT is not a setting; did you mean UVICORN_PORT?"),
        ("XYZZY", "UVICORN_XYZZY is not a setting; it is ignored"),
    ],
)
def test_a_variable_of_uvicorns_that_sets_nothing_is_one_warning(name: str, sentence: str) -> None:
    assert strays({f"UVICORN_{name}": "1", "UVICORN_PORT": "1"}) == [sentence]


def test_an_empty_variable_is_not_set() -> None:
    assert strays({"UVICORN_WORKERS": "", "UVICORN_PROT": ""}) == []
    assert read_config(["x"], {"UVICORN_SSL_KEYFILE": ""}).app == "x"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("UVICORN_SSL_KEYFILE", "--ssl-keyfile: there is no certificate to the key"),
        ("UVICORN_SSL_CERTFILE", "key.pem cannot be read: no such file or directory"),
        ("BRIDGEHEAD_SSL_CA_CERTS", "--ssl-ca-certs is for TLS, and there is no certificate"),
        ("BRIDGEHEAD_SSL_CERTFIEL", "BRIDGEHEAD_SSL_CERTFIEL asks for something of TLS that there is not"),
    ],
)
def test_a_variable_that_asks_for_tls_is_not_answered_by_plaintext(
    tmp_path: Path, name: str, sentence: str
) -> None:
    (tmp_path / "main.py").write_text(APP)
    done = serve("main:app", cwd=tmp_path, **{name: "key.pem"})
    assert done.returncode == 3
    assert done.stderr.startswith(f"bridgehead: error: {sentence}\n  hint: ")


def test_an_interrupt_while_the_application_loads_ends_quietly(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(
        f"import os\nos.kill(os.getpid(), {signal.SIGINT:d})\nfor _ in range(9): pass\n"
    )
    done = serve("main:app", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (130, "")
