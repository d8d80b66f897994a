"""Where settings come from: flags, the environment, files; and how they are shown."""

import json
import os
import re
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from harness import Server

from bridgehead.command_line import read_command_line
from bridgehead.config import OPTIONS, Config
from bridgehead.errors import StartError
from bridgehead.options import Option
from bridgehead.print_config import as_file, as_table, overruled
from bridgehead.settings import Settings, read_settings
from bridgehead.toml_text import as_toml
from bridgehead.watched import watched

APP = "async def app(scope, receive, send): raise NotImplementedError(scope['type'])\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of its own, which is the current one."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def settings(words: str = "", environ: Mapping[str, str] | None = None) -> Settings:
    line = read_command_line(words.split())
    return read_settings(line.given, environ or {}, Path.cwd(), line.config)


def refused(words: str = "", environ: Mapping[str, str] | None = None) -> StartError:
    with pytest.raises(StartError) as problem:
        settings(words, environ)
    return problem.value


def pyproject(text: str, folder: str = ".") -> None:
    Path(folder, "pyproject.toml").write_text(f"[tool.bridgehead]\n{text}\n", encoding="utf-8")


# --- ranks


def test_flags_outrank_the_environment_which_outranks_the_file_which_outranks_defaults() -> None:
    pyproject("port = 5\nbacklog = 5\nroot-path = '/file'")
    Path(".env").write_text("UVICORN_PORT=4\nBRIDGEHEAD_BACKLOG=4\n")
    environ = {"BRIDGEHEAD_PORT": "2", "UVICORN_PORT": "3", "PORT": "9"}
    words = "--env-file .env"
    assert settings(f"{words} --port 1", environ).config.port == 1
    assert settings(words, environ).config.port == 2
    del environ["BRIDGEHEAD_PORT"]
    assert settings(words, environ).config.port == 3
    del environ["UVICORN_PORT"]
    assert settings(words, environ).config.port == 4
    Path(".env").write_text("")
    assert settings(words, environ).config.port == 9
    del environ["PORT"]
    found = settings(words, environ)
    assert (found.config.port, found.config.backlog, found.config.root_path) == (5, 5, "/file")
    assert found.config.host == Config().host


def samples(option: Option) -> Iterator[tuple[str, object]]:
    """A default that is not empty, or something of the right type."""
    if option.default not in (None, "", ()):
        yield as_toml(option.default), option.default
    for written in (
        "true",
        "7",
        '"/x"',
        '["/x"]',
        '["/x=/y"]',
        '["x/y"]',
        '["/x=y"]',
        '"{status}"',
        '["A: b"]',
        '[":1"]',
        '"info"',
        '"uvicorn"',
        '"027"',
        '":1"',
    ):
        yield written, tomllib.loads(f"x = {written}")["x"]


def is_read(option: Option, value: object) -> bool:
    try:
        option.read(value)
    except StartError:
        return False
    return type(value) in option.types


@pytest.mark.parametrize(
    "option", [each for each in OPTIONS if each.name != "env_file"], ids=lambda o: o.name
)
def test_every_option_can_be_set_in_the_file_under_its_key(option: Option) -> None:
    written, value = next(each for each in samples(option) if is_read(option, each[1]))
    for key in (option.toml_key, option.toml_key.replace("-", "_")):
        pyproject(f"{key} = {written}")
        found = settings()
        assert found.resolved.origins[option.name].source == f"pyproject.toml, line 2: {key}"
        read = option.read(value)
        assert getattr(found.config, option.name) == (option.anchor(read, ".") if option.anchor else read)


@pytest.mark.parametrize(
    ("file", "words", "environ", "expected"),
    [
        ("bind = [':80']", "--port 9", {}, "127.0.0.1:9"),
        ("uds = '/x'", "", {"PORT": "9"}, "127.0.0.1:9"),
        ("port = 9", "--uds /x", {}, "unix:/x"),
        ("host = '::'", "", {"BRIDGEHEAD_PORT": "9"}, "[::]:9"),
        ("", "--uds /x", {"PORT": "9"}, "unix:/x"),
        ("", "--bind :1", {"PORT": "9"}, ":1"),
    ],
)
def test_the_highest_source_says_where_to_listen(
    file: str, words: str, environ: dict[str, str], expected: str
) -> None:
    pyproject(file)
    assert [str(each) for each in settings(words, environ).config.addresses()] == [expected]


def test_one_file_that_says_two_things_about_where_to_listen_is_refused() -> None:
    pyproject("port = 9\nbind = [':80']")
    message = "pyproject.toml, line 3: bind and pyproject.toml, line 2: port say different things"
    assert refused().message.startswith(message)


def test_an_address_of_the_environment_replaces_another_of_the_env_file() -> None:
    Path(".env").write_text("BRIDGEHEAD_PORT=9\n")
    found = settings("--env-file .env", {"BRIDGEHEAD_BIND": ":80"})
    assert [str(each) for each in found.config.addresses()] == [":80"]


# --- PORT


@pytest.mark.parametrize("name", ["BRIDGEHEAD_PORT", "UVICORN_PORT"])
def test_port_is_taken_below_our_name_and_uvicorns(name: str) -> None:
    assert settings("", {"PORT": "9"}).config.addresses() == Config(port=9).addresses()
    assert settings("", {"PORT": "9", name: "8"}).config.port == 8
    assert settings("", {"PORT": ""}).config.port == 8000
    assert settings("", {"HOST": "example"}).config.host == "127.0.0.1"
    for word, polls in (("1", True), ("enable", True), ("false", False), ("disabled", False)):
        assert settings("", {"WATCHFILES_FORCE_POLLING": word}).config.reload_poll is polls
    assert refused("", {"PORT": "x"}).message == "PORT: 'x' is not a whole number from 0 to 65535"


@pytest.mark.parametrize(
    ("words", "environ", "told"),
    [
        ("", {"PORT": "9"}, True),
        ("--host 0.0.0.0", {"PORT": "9"}, False),
        ("--uds /x", {"PORT": "9"}, False),
        ("--port 9", {"PORT": "9"}, False),
        ("", {"BRIDGEHEAD_PORT": "9"}, False),
    ],
)
def test_who_gets_the_port_alone_from_the_platform_is_told(
    words: str, environ: dict[str, str], told: bool
) -> None:
    sentence = "PORT sets the port only; --host 0.0.0.0 lets other machines connect."
    assert (sentence in settings(words, environ).notes()) == told


def test_a_variable_that_kubernetes_sets_for_a_service_is_explained() -> None:
    problem = refused("", {"BRIDGEHEAD_PORT": "tcp://10.0.0.1:8000"})
    assert problem.message.startswith("BRIDGEHEAD_PORT: 'tcp://10.0.0.1:8000' is not a whole number")
    assert problem.hint.endswith("set enableServiceLinks: false")


# --- the env file


def test_an_env_file_may_be_named_by_flag_environment_and_file() -> None:
    Path("a").mkdir()
    Path("a", ".env").write_text("BRIDGEHEAD_PORT=9\n")
    expected = "a/.env, line 1: BRIDGEHEAD_PORT"
    assert settings("--env-file a/.env").resolved.origins["port"].source == expected
    assert settings("", {"UVICORN_ENV_FILE": "a/.env"}).config.port == 9
    Path("a", "settings.toml").write_text('env-file = ".env"')
    assert settings("--config a/settings.toml").config.port == 9


@pytest.mark.parametrize("name", ["BRIDGEHEAD_CONFIG", "BRIDGEHEAD_ENV_FILE", "UVICORN_ENV_FILE"])
def test_an_env_file_cannot_name_other_files(name: str) -> None:
    Path(".env").write_text(f"\n{name}=x\n")
    problem = refused("--env-file .env")
    assert problem.message == f".env, line 2: {name} comes too late, since it says which files to read"
    assert settings("--env-file .env", {name: ".env" if "ENV" in name else "/dev/null"})


def test_an_env_file_that_asks_for_tls_is_not_answered_by_plaintext() -> None:
    Path(".env").write_text("UVICORN_SSL_KEYFIL=x\n")
    assert refused("--env-file .env").message.startswith("UVICORN_SSL_KEYFIL asks for something of TLS")


def test_the_application_sees_the_env_file_while_it_is_imported(folder: Path) -> None:
    (folder / "main.py").write_text(f"import os\nprint(os.environ['A'], os.environ['B'])\n{APP}")
    (folder / ".env").write_text("A=file\nB=file\n")
    with Server("main:app", "--env-file", ".env", cwd=folder, env={"A": "set"}) as server:
        server.wait_line("Environment from .env.")
    assert server.stdout == "set file\n"


# --- the configuration file


def test_the_nearest_pyproject_with_the_table_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyproject("port = 1", "..")
    assert settings().config.port == 1
    assert next(iter(settings().notes())) == f"Settings from {folder.parent}/pyproject.toml."
    Path("pyproject.toml").write_text("[tool.bridgeheads]\nport = 2")
    assert settings().config.port == 1
    pyproject("port = 3")
    assert settings().config.port == 3
    assert [*settings().notes()] == ["Settings from pyproject.toml."]
    (folder / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(folder / "a" / "b")
    assert settings().config.port == 3


def test_no_file_is_no_mistake() -> None:
    assert settings().config == Config()
    assert [*settings().notes()] == []


def test_another_tools_broken_pyproject_is_passed_over() -> None:
    Path("pyproject.toml").write_text("[tool.other\n")
    assert settings().config == Config()


def test_a_named_file_is_read_instead(folder: Path) -> None:
    pyproject("port = 1\nbacklog = 1")
    Path("other.toml").write_text("port = 2")
    Path("a").mkdir()
    pyproject("port = 3", "a")
    found = settings("--config other.toml")
    assert (found.config.port, found.config.backlog) == (2, 2048)
    assert settings("", {"BRIDGEHEAD_CONFIG": str(folder / "other.toml")}).config.port == 2
    assert settings("--config a/pyproject.toml", {"BRIDGEHEAD_CONFIG": "other.toml"}).config.port == 3
    Path("like.toml").write_bytes(Path("a/pyproject.toml").read_bytes())
    assert settings("--config like.toml").config.port == 3
    assert settings("--config /dev/null").config == Config()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.toml", None, "--config: x.toml cannot be read: no such file or directory"),
        ("pyproject.toml", "[tool.other]", "--config: pyproject.toml has no [tool.bridgehead]"),
        ("x.toml", "[tool.other]", "--config: x.toml has no [tool.bridgehead]"),
        (
            "x.toml",
            "port = 1\nport = 2\n# end",
            "--config: x.toml, line 2 is not TOML: cannot overwrite a value",
        ),
        ("x.toml", "port = ", "--config: x.toml is not TOML: invalid value (at end of document)"),
    ],
)
def test_a_named_file_that_cannot_be_used_ends_the_start(name: str, text: str | None, message: str) -> None:
    if text is not None:
        Path(name).write_text(text)
    problem = refused(f"--config {name}")
    assert problem.message.startswith(message)
    assert problem.hint


def test_a_table_that_is_almost_ours_is_named() -> None:
    Path("x.toml").write_text("[tool.bridgehed]\nport = 1\n[tool.ruff]\n")
    assert refused("--config x.toml").hint == "did you mean [tool.bridgehead] by [tool.bridgehed]?"
    Path("x.toml").write_text("tool = 1")
    assert refused("--config x.toml").hint == "add the table"


@pytest.mark.parametrize("name", ["bridgehed", "birdgehead", "bridgeheads", "bridge-head", "'Bridgehead'"])
def test_a_table_of_pyproject_that_is_almost_ours_is_warned_of(name: str, folder: Path) -> None:
    Path("pyproject.toml").write_text(f"[tool.ruff]\n[ tool.{name} ]\nport = 1\n[tool.{name}.log-config]\n")
    shown = name.strip("'")
    due = f"pyproject.toml, line 2: [tool.{shown}] sets nothing; did you mean [tool.bridgehead]?"
    assert [*settings().doubts()] == [due]
    pyproject("port = 3", "..")
    assert [*settings().doubts()] == [due]
    assert not [*settings("--config /dev/null").doubts()]
    (folder / "a").mkdir()
    pyproject("port = 4", "a")
    assert not [*settings("--config a/pyproject.toml").doubts()]


@pytest.mark.parametrize("name", ["ruff", "black", "bridgehead-plugin", "bridge", "head"])
def test_tables_of_other_tools_are_not_warned_of(name: str) -> None:
    Path("pyproject.toml").write_text(f"[tool.{name}]\nport = 1\n")
    assert not [*settings().doubts()]


@pytest.mark.parametrize(
    ("top", "key"),
    [
        ("port = 1", "port"),
        ("prot = 1", "prot"),
        ("root_path = '/'", "root_path"),
        ("[log-config]", "log-config"),
    ],
)
def test_a_key_at_the_top_of_a_file_that_has_the_table_is_refused(top: str, key: str) -> None:
    table = "[tool.bridgehead]\nbacklog = 1\n"
    Path("x.toml").write_text(f"# top\n{top}\n{table}")
    problem = refused("--config x.toml")
    assert problem.message == f"x.toml, line 2: {key} sets nothing: the file has a [tool.bridgehead]"
    assert problem.hint.startswith("move it below [tool.bridgehead]")
    Path("x.toml").write_text(f"[project]\nname = 'shop'\n{table}[other]\nport = 1\n")
    assert settings("--config x.toml").config.backlog == 1


def test_a_file_that_is_not_utf_8_is_refused() -> None:
    Path("x.toml").write_bytes(b"app = '\xff'")
    assert refused("--config x.toml").message == "--config: x.toml is not UTF-8, as TOML has to be"
    Path("x.toml").write_bytes(b"\xef\xbb\xbfport = 7")
    assert settings("--config x.toml").config.port == 7


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("\nprot = 1", "line 3: prot is not a setting", "did you mean `port`?"),
        ("header = ['a: b']", "line 2: header is not a setting", "did you mean `headers`?"),
        ("xyzzy = 1", "line 2: xyzzy is not a setting", "leave it out; `serve --print-config --toml`"),
        ("bridgehead = 1", "line 2: bridgehead is not a setting", ""),
        ("log.level = 'info'", "line 2: log is not a setting", ""),
        ("[tool.bridgehead.tls]", "line 2: tls is not a setting", ""),
        (
            "version = true",
            "line 2: version is a setting of uvicorn's that is not",
            "leave it out",
        ),
        ("ssl-keyfil = 'x'", "line 2: ssl-keyfil is not a setting", "did you mean `ssl-keyfile`?"),
        ("ssl_certfil = 1", "line 2: ssl_certfil is not a setting", "did you mean `ssl-certfile`?"),
        ("root-path = '/'\nroot_path = '/'", "line 3: root_path: `root-path` is there twice", "keep one"),
        ("port = '9'", 'line 2: port: "9" is a text; a whole number is due', "write `port = 9`"),
        ("port = true", "line 2: port: true is a boolean; a whole number is due", ""),
        ("port = 1.5", "line 2: port: 1.5 is a number with a fraction; a whole number is due", ""),
        (
            "port = 'x'",
            'line 2: port: "x" is a text; a whole number is due',
            "this is for: port to listen on",
        ),
        ("port = 70000", "line 2: port: 70000 is not a whole number from 0 to 65535", ""),
        ("access-log = 'no'", 'line 2: access-log: "no" is a text; true or false is due', "= false`"),
        ("access-log = 0", "line 2: access-log: 0 is a whole number; true or false is due", ""),
        ("root-path = 1", "line 2: root-path: 1 is a whole number; a text is due", ""),
        ("root-path = 1979-05-27", "line 2: root-path: 1979-05-27 is a date or a time; a text is due", ""),
        ("bind = ':1'", 'line 2: bind: ":1" is a text; a list is due', 'write `bind = [":1"]`'),
        (
            "headers = 'A: b'",
            'line 2: headers: "A: b" is a text; a list is due',
            'write `headers = ["A: b"]`',
        ),
        ("headers = {A = 'b'}", 'line 2: headers: {"A" = "b"} is a table; a list is due', ""),
        ("bind = [1]", "line 2: bind: 1 is not an address", "write host:port"),
        ("timeout-keep-alive = '1d'", "line 2: timeout-keep-alive: '1d' is not a number of seconds", "2m"),
        ("timeout-keep-alive = true", "a number with a fraction or a text is due", ""),
        ("loop = 'uvlop'", "line 2: loop: 'uvlop' is not one of auto, asyncio, uvloop", "`uvloop`"),
    ],
)
def test_a_key_or_a_value_that_is_wrong_is_told_with_its_line(text: str, message: str, hint: str) -> None:
    pyproject(text)
    problem = refused()
    assert problem.message.startswith("pyproject.toml, line ")
    assert message in problem.message
    assert hint in problem.hint


@pytest.mark.parametrize(
    "text",
    [
        "[tool]\nbridgehead.port = true",
        "[tool]\nbridgehead = {port = true}",
    ],
)
def test_a_line_that_is_not_sure_is_not_told(text: str) -> None:
    Path("pyproject.toml").write_text(text)
    assert refused().message == "pyproject.toml: port: true is a boolean; a whole number is due"


@pytest.mark.parametrize(
    "text",
    [
        '"""\nport = 1\n"""',
        '"""\nport = 1\\"""\n\n"""""',
        "'''\nport = 1\n'''''",
        '"\'\'\' # \\"" # it\'s """\n\n',
    ],
)
def test_a_line_is_told_beside_texts_of_several_lines(text: str) -> None:
    Path("pyproject.toml").write_text(f"[tool.bridgehead]\nroot-path = {text}\nport = true")
    line = text.count("\n") + 3
    assert refused().message == f"pyproject.toml, line {line}: port: true is a boolean; a whole number is due"


def test_a_key_of_another_table_is_not_taken_for_ours() -> None:
    text = "port = 1\n[tool.other]\nport = 1\n[ tool . 'bridgehead' ] # here\nport-x = 1\n"
    Path("pyproject.toml").write_text(text)
    assert refused().message == "pyproject.toml, line 5: port-x is not a setting"


def test_a_table_that_is_none_is_refused() -> None:
    Path("pyproject.toml").write_text("[tool]\nbridgehead = 1")
    assert refused().message == "pyproject.toml, line 2: bridgehead: 1 is a whole number; a table is due"


def test_paths_in_a_file_are_relative_to_it(folder: Path) -> None:
    Path("a").mkdir()
    Path("a", "b.toml").write_text('app-dir = "src"\nbind = ["unix:run/x", ":1", "unix:/y"]')
    found = settings("--config a/b.toml").config
    assert found.app_dir == str(folder / "a" / "src")
    assert found.bind == (f"unix:{folder}/a/run/x", ":1", "unix:/y")
    Path("a", "b.toml").write_text('uds = "../x"')
    assert settings("--config a/b.toml").config.uds == str(folder / "x")
    assert settings("--uds x --config a/b.toml").config.uds == "x"


def test_an_application_named_in_a_file_is_imported_from_there(folder: Path) -> None:
    pyproject('app = "main:app"', "..")
    assert settings().config.app_dir == str(folder.parent)
    assert settings("--app-dir x").config.app_dir == "x"
    assert settings("other:app").config.app_dir == ""
    (folder.parent / "main.py").write_text(APP)
    (folder / "main.py").write_text("raise Exception('the wrong one')")
    for target in ("main:app", "main.py:app"):
        pyproject(f'app = "{target}"', "..")
        with Server("--lifespan=off", cwd=folder) as server:
            server.wait_line(f"Application {target} ({folder.parent}/pyproject.toml, line 2: app).")


# --- showing


def test_what_is_in_force_is_shown_of_a_setting_that_depends_on_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setattr("resource.getrlimit", lambda _: (64, 1064))  # a server has itself given the latter
    shown = dict(line.split(maxsplit=1) for line in as_table(settings("x:app")).splitlines())
    assert shown["drain-delay"].startswith("5 (0, or 5 under Kubernetes)")
    assert shown["limit-connections"].startswith("800 (as there are files for)")
    assert shown["limit-static"].startswith("100 (as there are files for)")
    shown = dict(line.split(maxsplit=1) for line in as_table(settings("x:app --reload")).splitlines())
    assert shown["drain-delay"].startswith("0 (")


def test_every_setting_is_shown_with_its_value_and_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    pyproject('app = "shop.web:app"\nheaders = ["A: b", "C: d"]')
    Path(".env").write_text("\nUVICORN_BACKLOG=7\n")
    found = settings("--env-file .env --no-access-log --bind :1", {"BRIDGEHEAD_TIMEOUT_KEEP_ALIVE": "1m"})
    lines = as_table(found).splitlines()
    assert [line.split()[0] for line in lines] == [option.toml_key for option in OPTIONS]
    shown = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines}
    expected = {
        "app": ('"shop.web:app"', "pyproject.toml, line 2: app"),
        "app-dir": (f'"{Path.cwd()}"', "pyproject.toml, line 2: app"),
        "headers": ('["a: b", "c: d"]', "pyproject.toml, line 3: headers"),
        "env-file": ('".env"', "--env-file"),
        "access-log": ("false", "--access-log/--no-access-log"),
        "bind": ('[":1"]', "--bind"),
        "backlog": ("7", ".env, line 2: UVICORN_BACKLOG"),
        "timeout-keep-alive": ("60", "BRIDGEHEAD_TIMEOUT_KEEP_ALIVE"),
        "timeout-graceful-shutdown": ("25", "default"),
        "uds": ("(none)", "default"),
        "use-colors": ("false (on a terminal)", "default"),
        "drain-delay": ("0 (0, or 5 under Kubernetes)", "default"),
    }
    for key, (value, place) in expected.items():
        assert shown[key].startswith(value), key
        assert shown[key].removeprefix(value).strip() == place, key


@pytest.mark.parametrize(
    ("words", "environ"),
    [
        ("x:app", {}),
        ("main.py --bind unix:x --bind [::1]:0 --timeout-keep-alive 0.1", {}),
        ("x:app --uds run/x --host ::1 --use-colors", {"BRIDGEHEAD_HEADERS": "a:é b:c:d e:"}),
        ("x:app --fd 3 --no-server-header", {"UVICORN_TIMEOUT_GRACEFUL_SHUTDOWN": "1h"}),
        ("x:create()", {"PORT": "9", "BRIDGEHEAD_ROOT_PATH": '/"\\\x7f\t'}),
    ],
)
def test_the_printed_file_makes_the_same_configuration_from_anywhere(
    words: str, environ: dict[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = settings(words, environ)
    printed = as_file(first)
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    Path("printed.toml").write_text(printed, encoding="utf-8")
    second = settings("--config printed.toml")
    assert as_file(second) == printed
    unheard = {"host", "port"} if first.config.uds or first.config.fd else set()
    for option in OPTIONS:
        if option.name in unheard:
            continue
        one, other = (getattr(each.config, option.name) for each in (first, second))
        assert (option.anchor(one, str(folder)) if option.anchor and one is not None else one) == other
    assert len(second.config.addresses()) == len(first.config.addresses())


def test_values_of_a_log_config_are_printed_with_their_types() -> None:
    """A handler that was given a date, or a number with a fraction, is given it again."""
    values = {
        "zulu": "1979-05-27T07:32:00Z",
        "offset": "1979-05-27T00:32:00.999999-07:30",
        "local": "1979-05-27T07:32:00",
        "day": "0979-05-27",
        "time": "07:32:00.5",
        "fractions": "[1.0, -0.0, 1e300, 0.1, inf, [-inf, {a = 2.0, b = 2}]]",
        '"\\u007f é 😀 \\" ."': "true",
    }
    lines = "".join(f"{key} = {value}\n" for key, value in values.items())
    pyproject(f"[tool.bridgehead.log-config]\nversion = 1\n[tool.bridgehead.log-config.handlers.h]\n{lines}")
    first = settings()
    printed = tomllib.loads(as_file(first))["log-config"]
    assert repr(printed) == repr(first.config.log_config)


def test_a_printed_file_is_read_without_a_warning_and_what_it_changes_is_warned_of() -> None:
    Path("printed.toml").write_text(as_file(settings("main:app")), encoding="utf-8")
    assert not list(settings("--config printed.toml").doubts())
    Path("changed.toml").write_text('ssl-min-version = "1.3"', encoding="utf-8")
    told = ["changed.toml, line 1: ssl-min-version does nothing without --ssl-certfile."]
    assert list(settings("--config changed.toml").doubts()) == told
    told = ["--ssl-min-version does nothing without --ssl-certfile."]
    assert list(settings("--ssl-min-version 1.2").doubts()) == told


def test_the_printed_file_names_every_setting_but_addresses_that_do_not_count() -> None:
    unsaid = {
        "app --port 1": {"bind"},
        "app --bind :1": {"host", "port"},
        "app --uds x": {"host", "port", "bind"},
    }
    for words, missing in unsaid.items():
        lines = as_file(settings(words)).splitlines()[1:]
        named = {re.split(r" = | is not set: ", line.removeprefix("# "))[0] for line in lines}
        assert named == {option.toml_key for option in OPTIONS} - missing
    assert "# log-level is not set: info" in lines
    assert "# use-colors is not set: on a terminal" in lines


def test_directories_among_patterns_are_whole_in_the_printed_file(folder: Path) -> None:
    (folder / "templates").mkdir()
    words = "--reload-include templates --reload-include *.html --reload-exclude templates --reload-dir x"
    printed = tomllib.loads(as_file(settings(f"x:app {words}")))
    assert printed["reload-includes"] == [str(folder / "templates"), "*.html"]
    assert printed["reload-excludes"] == [str(folder / "templates")]
    assert printed["reload-dirs"] == [str(folder / "x")]


def test_a_printed_file_for_reload_watches_the_same_folders_from_anywhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder.parent / "beside").mkdir()
    first = settings("x:app --reload --app-dir ../beside")
    printed = as_file(first)
    assert tomllib.loads(printed)["reload-dirs"] == [str(folder), str(folder.parent / "beside")]
    seen = watched(first.config)
    monkeypatch.chdir(folder.parent)
    Path("printed.toml").write_text(printed, encoding="utf-8")
    assert watched(settings("--config printed.toml").config) == seen


@pytest.mark.parametrize(
    ("words", "environ", "line", "key"),
    [
        ("--port 7", {}, "UVICORN_PORT=8", "port"),
        ("", {"UVICORN_PORT": "7"}, "UVICORN_PORT=8", "port"),
        ("", {"BRIDGEHEAD_BACKLOG": "7"}, "UVICORN_BACKLOG=8", "backlog"),
        ("", {"PORT": "7"}, "PORT=8", "port"),
        ("--backlog 7", {}, "UVICORN_BACKLOG=many", "backlog"),
        ("--port 7", {}, "BRIDGEHEAD_UDS=x", "uds"),
        ("", {}, "BRIDGEHEAD_PIDFILE=x", "pidfile"),
    ],
)
def test_what_an_env_file_says_otherwise_than_the_printed_file_is_told(
    words: str, environ: dict[str, str], line: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(".env").write_text(f"{line}\nUVICORN_ROOT_PATH=/a\n")
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    found = settings(f"x:app --env-file .env --root-path /a {words}", environ)
    name = line.partition("=")[0]
    (told,) = overruled(found)
    assert told.startswith(f".env, line 1: {name} outranks the printed file, which has another value: ")
    assert f"give --{key} beside it" in told
    printed = as_file(found).splitlines()
    (place,) = [number for number, each in enumerate(printed) if "outranks" in each]
    assert printed[place] == f"# the next line does nothing: .env, line 1: {name} outranks it"
    assert printed[place + 1].removeprefix("# ").startswith((f"{key} = ", f"{key} is not set"))


def test_an_env_file_that_says_the_same_as_the_printed_file_is_not_told_of() -> None:
    Path(".env").write_text("UVICORN_PORT=7\nBRIDGEHEAD_BACKLOG=8\nOTHER=x\n")
    for words in ("", "--port 7 --backlog 8"):
        found = settings(f"x:app --env-file .env {words}")
        assert not [*overruled(found)]
        Path("printed.toml").write_text(as_file(found), encoding="utf-8")
        config = settings("--config printed.toml").config
        assert (config.port, config.backlog) == (7, 8)


def test_the_command_warns_of_what_an_env_file_says_otherwise(folder: Path) -> None:
    (folder / ".env").write_text("UVICORN_PORT=8\n")
    words = ("x:app", "--env-file", ".env", "--port", "7", "--print-config")
    assert run(*words, "--toml", cwd=folder).stderr == (
        "WARNING:  .env, line 1: UVICORN_PORT outranks the printed file, which has another value: "
        "give --port beside it, or take that line out.\n"
    )
    assert run(*words, cwd=folder).stderr == ""


@pytest.mark.parametrize("flag", ["--env-file", "--uds"])
def test_an_empty_name_is_refused(flag: str) -> None:
    line = read_command_line([flag, ""])
    with pytest.raises(StartError) as problem:
        read_settings(line.given, {}, Path.cwd(), line.config)
    assert problem.value.message == f"{flag}: '' is no path"


def run(*words: str, cwd: Path, env: Mapping[str, str] | None = None) -> Server:
    """A command that ends by itself; its words stand where a target would."""
    with Server(*words, cwd=cwd, env=env, ready=False) as command:
        command.wait_exit()
    return command


def test_the_command_prints_to_stdout_and_loads_nothing(folder: Path) -> None:
    (folder / "main.py").write_text("raise Exception('loaded')")
    table = run("--print-config", cwd=folder, env={"BRIDGEHEAD_BACKLOG": "7"})
    assert table.process.returncode == 0
    assert (table.stderr, table.stdout.split("\n")[0].split()) == (
        "",
        ["app", '"main.py"', "found", "in", str(folder)],
    )
    printed = run(
        "--print-config", "--toml", cwd=folder, env={"BRIDGEHEAD_BACKLOG": "7", "UVICORN_PROT": "1"}
    )
    assert printed.stderr == "WARNING:  UVICORN_PROT is not a setting; did you mean UVICORN_PORT?\n"
    assert tomllib.loads(printed.stdout)["backlog"] == 7
    assert tomllib.loads(printed.stdout)["app-dir"] == str(folder)


def test_the_command_prints_also_where_no_application_is(folder: Path) -> None:
    table = run("--print-config", "--port", "7", cwd=folder)
    assert (table.process.returncode, table.stderr) == (0, "")
    app, *others = table.stdout.splitlines()
    assert app.split()[:5] == ["app", "(none)", "there", "is", "no"]
    assert app.endswith(f" or app/api.py in {folder}")
    assert len(others) == len(OPTIONS) - 1
    assert next(line.split() for line in others if line.startswith("port ")) == ["port", "7", "--port"]
    printed = run("--print-config", "--toml", "--port", "7", cwd=folder)
    assert printed.process.returncode == 0
    assert "\n# app is not set: " in printed.stdout
    assert tomllib.loads(printed.stdout)["port"] == 7
    (folder / "pyproject.toml").write_text("[tool.fastapi]\nentrypoint = 7\n")
    wrong = run("--print-config", cwd=folder)
    assert wrong.process.returncode == 3
    assert "7 is a whole number; a text is due" in wrong.stderr


def test_what_is_printed_is_not_mixed_with_lines_that_a_log_configuration_sends_to_stdout(
    folder: Path,
) -> None:
    (folder / "main.py").write_text("")
    handler = {"class": "logging.StreamHandler", "stream": "ext://sys.stdout"}
    logs = {"version": 1, "handlers": {"out": handler}, "root": {"handlers": ["out"]}}
    (folder / "logs.json").write_text(json.dumps(logs))
    words = ("--print-config", "--toml", "--log-config", "logs.json", "--uds", "x", "--port", "1")
    printed = run(*words, cwd=folder)
    assert printed.stderr == "WARNING:  --port is passed over, since --uds says where to listen.\n"
    settings = tomllib.loads(printed.stdout)
    assert settings["uds"] == str(folder / "x")
    assert not {"host", "port", "bind"}.intersection(settings)


def test_that_nobody_is_trusted_is_printed_as_it_was_said(folder: Path) -> None:
    (folder / "main.py").write_text("")
    nobody = {"FORWARDED_ALLOW_IPS": ""}
    table = run("--print-config", cwd=folder, env=nobody).stdout
    (line,) = (each for each in table.splitlines() if each.startswith("forwarded-allow-ips"))
    assert line.split() == ["forwarded-allow-ips", '""', "FORWARDED_ALLOW_IPS"]
    printed = run("--print-config", "--toml", cwd=folder, env=nobody).stdout
    assert tomllib.loads(printed)["forwarded-allow-ips"] == ""


def test_the_words_that_make_no_sense_together_are_refused() -> None:
    for words, message in (
        (["--toml"], "--toml says how to print"),
        (["--check", "--print-config"], "--check and --print-config are two things to do"),
    ):
        with pytest.raises(StartError) as problem:
            read_command_line(words)
        assert problem.value.message == message


def test_a_current_directory_that_is_gone_is_told(folder: Path) -> None:
    gone = folder / "gone"
    gone.mkdir()
    script = f"rmdir {gone}; exec {sys.executable} -m bridgehead main:app"
    done = subprocess.run(["sh", "-c", script], cwd=gone, capture_output=True, text=True, timeout=30)
    assert done.returncode == 3
    assert done.stderr.startswith("bridgehead: error: the current directory is not there any more\n  hint: ")


# --- check


def test_a_check_loads_the_application_and_neither_binds_nor_starts_it(folder: Path) -> None:
    (folder / "main.py").write_text(f"print('loaded', flush=True)\n{APP}")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run("--check", "main:app", "--lifespan", "on", "--port", port, cwd=folder)
    assert (done.process.returncode, done.stdout) == (0, "loaded\n")
    assert done.stderr == "INFO:     main:app loads, and the settings are valid.\n"


def test_a_check_says_so_though_no_logger_would(folder: Path) -> None:
    (folder / "main.py").write_text(APP)
    (folder / "serve.toml").write_text("log-config = {version = 1}")
    done = run("--check", "main:app", "--config", "serve.toml", cwd=folder)
    assert (done.process.returncode, done.stdout) == (0, "")
    assert done.stderr.endswith("main:app loads, and the settings are valid.\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["main:ap"], "main has no attribute 'ap'"),
        (["broken"], "broken raised ZeroDivisionError while it was imported"),
        (["main", "--prot", "1"], "there is no option '--prot'"),
        (["main", "--env-file", "nowhere"], "nowhere cannot be read: no such file or directory"),
        (["main:app", "--reload", "--reload-dir", "nope"], "--reload-dir: there is no directory 'nope'"),
        (["main:app", "--user", "nobody-such"], "--user: there is no user 'nobody-such'"),
        (["main:app", "--group", "nobody-such"], "--group: there is no group 'nobody-such'"),
    ],
)
def test_a_check_that_fails_ends_as_the_start_would(words: list[str], message: str, folder: Path) -> None:
    (folder / "main.py").write_text(APP)
    (folder / "broken.py").write_text("1 / 0")
    checked, started = (run(*each, *words, cwd=folder) for each in (["--check"], []))
    assert checked.process.returncode == started.process.returncode == 3
    assert f"bridgehead: error: {message}" in checked.stderr
    assert checked.stderr == started.stderr


LEFT = {
    "a thread": "import threading\nthreading.Thread(target=threading.Event().wait).start()\n",
    "an executor": "import concurrent.futures, threading\n"
    "concurrent.futures.ThreadPoolExecutor().submit(threading.Event().wait)\n",
    "the loop's executor": "import asyncio, threading\n"
    "asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)\n",
    "an atexit": "import atexit, threading\natexit.register(threading.Event().wait)\n",
}


@pytest.mark.parametrize("left", LEFT)
def test_a_check_ends_whatever_the_import_has_left_behind(left: str, folder: Path) -> None:
    (folder / "main.py").write_text(LEFT[left] + APP)
    (folder / "broken.py").write_text(f"{LEFT[left]}\n1 / 0\n")
    done = run("--check", "main:app", cwd=folder)
    assert (done.process.returncode, done.stderr) == (
        0,
        "INFO:     main:app loads, and the settings are valid.\n",
    )
    for words in (["--check"], []):
        failed = run(*words, "broken:app", cwd=folder)
        assert failed.process.returncode == 3
        assert "bridgehead: error: broken raised ZeroDivisionError" in failed.stderr


def test_a_check_leaves_what_the_import_made_in_order(folder: Path) -> None:
    made = "import atexit, tempfile\nkept = tempfile.TemporaryDirectory(dir='.', prefix='made-')\n"
    (folder / "main.py").write_text(f"{made}atexit.register(print, 'left in order')\n{APP}")
    done = run("--check", "main:app", cwd=folder)
    assert (done.process.returncode, done.stdout) == (0, "left in order\n")
    assert not [*folder.glob("made-*")]


# --- finding the application

FILES = ["main.py", "app.py", "api.py", "app/main.py", "app/app.py", "app/api.py"]


@pytest.mark.parametrize("index", range(len(FILES)))
def test_the_first_file_that_is_there_is_served(index: int, folder: Path) -> None:
    (folder / "app").mkdir()
    for name in FILES[index:]:
        (folder / name).write_text("pass")
    found = settings().with_application(folder)
    assert found.config.app == FILES[index]
    assert f"Application {FILES[index]} (found in {folder})." in found.notes()


def test_who_names_an_application_gets_that_one(folder: Path) -> None:
    (folder / "main.py").write_text("pass")
    Path("pyproject.toml").write_text("[tool.fastapi]\nentrypoint = 'shop.web:app'\n")
    found = settings().with_application(folder)
    assert (found.config.app, found.config.app_dir) == ("shop.web:app", str(folder))
    place = "pyproject.toml, line 2: entrypoint under [tool.fastapi]"
    assert f"Application shop.web:app ({place})." in found.notes()
    with Path("pyproject.toml").open("a") as file:
        file.write("[tool.bridgehead]\napp = 'ours:app'\n")
    assert settings().with_application(folder).config.app == "ours:app"
    environ = {"UVICORN_APP": "theirs:app"}
    assert settings("", environ).with_application(folder).config.app == "theirs:app"
    assert settings("x:y", environ).with_application(folder).config.app == "x:y"


def test_the_entrypoint_of_another_directory_is_not_taken(folder: Path) -> None:
    (folder.parent / "pyproject.toml").write_text("[tool.fastapi]\nentrypoint = 'shop.web:app'\n")
    with pytest.raises(StartError):
        settings().with_application(folder)


def test_an_entrypoint_that_is_no_text_is_refused(folder: Path) -> None:
    Path("pyproject.toml").write_text("[tool.fastapi]\nentrypoint = 3\n")
    with pytest.raises(StartError) as problem:
        settings().with_application(folder)
    message = "pyproject.toml, line 2: entrypoint: 3 is a whole number; a text is due"
    assert problem.value.message == message


def test_files_are_looked_for_in_the_app_dir(folder: Path) -> None:
    (folder / "src").mkdir()
    (folder / "main.py").write_text("pass")
    (folder / "src" / "api.py").write_text("pass")
    found = settings("--app-dir src").with_application(folder)
    assert (found.config.app, found.config.app_dir) == ("api.py", "src")


def test_who_finds_nothing_learns_where_it_was_looked_for(folder: Path) -> None:
    done = run("--no-access-log", cwd=folder)
    assert done.process.returncode == 3
    looked = "main.py, app.py, api.py, app/main.py, app/app.py or app/api.py"
    assert done.stderr == (
        f"bridgehead: error: no application was named, and there is no {looked} in {folder}\n"
        "  hint: write `serve module:app` or `serve path/to/file.py`; or, to write it once, "
        '`app = "module:app"` under [tool.bridgehead] in pyproject.toml\n'
    )


def test_a_package_is_found_served_and_told(folder: Path) -> None:
    (folder / "app").mkdir()
    (folder / "app" / "__init__.py").touch()
    (folder / "app" / "name.py").write_text("WORD = b'found'\n")
    (folder / "app" / "main.py").write_text(
        "from .name import WORD\n"
        "async def api(scope, receive, send):\n"
        "    assert scope['type'] == 'http'\n"
        "    await send({'type': 'http.response.start', 'status': 200, 'headers': []})\n"
        "    await send({'type': 'http.response.body', 'body': WORD})\n"
    )
    with Server("--no-access-log", cwd=folder) as server:
        assert server.ask("/").body == b"found"
        assert server.stderr.startswith(
            f"INFO:     Application app/main.py (found in {os.fspath(folder)}).\n"
        )
