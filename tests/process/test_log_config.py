"""`--log-config`: what people have for uvicorn works here, without uvicorn, and a mistake ends the start."""

from __future__ import annotations

import json
import logging
import re
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
from harness import Server

from bridgehead import log, loggers
from bridgehead.config import Config
from bridgehead.errors import StartError

# uvicorn 0.54's own, as its users copy it, but for the words in front.
COPIED: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "default": {
            "()": "uvicorn.logging.DefaultFormatter",
            "fmt": "mine %(levelprefix)s %(message)s",
            "use_colors": None,
        },
        "access": {
            "()": "uvicorn.logging.AccessFormatter",
            "fmt": 'mine %(levelprefix)s %(client_addr)s - "%(request_line)s" %(status_code)s',
        },
    },
    "handlers": {
        "default": {
            "formatter": "default",
            "class": "logging.StreamHandler",
            "stream": "ext://sys.stderr",
        },
        "access": {"formatter": "access", "class": "logging.StreamHandler", "stream": "ext://sys.stdout"},
    },
    "loggers": {
        "uvicorn": {"handlers": ["default"], "level": "INFO", "propagate": False},
        "uvicorn.error": {"level": "INFO"},
        "uvicorn.access": {"handlers": ["access"], "level": "INFO", "propagate": False},
    },
}

TOML = """
version = 1
disable_existing_loggers = false
[formatters.default]
"()" = "uvicorn.logging.DefaultFormatter"
fmt = "mine %(levelprefix)s %(message)s"
[formatters.access]
"()" = "uvicorn.logging.AccessFormatter"
fmt = 'mine %(levelprefix)s %(client_addr)s - "%(request_line)s" %(status_code)s'
[handlers.default]
formatter = "default"
class = "logging.StreamHandler"
[handlers.access]
formatter = "access"
class = "logging.StreamHandler"
stream = "ext://sys.stdout"
[loggers.uvicorn]
handlers = ["default"]
level = "INFO"
[loggers."uvicorn.access"]
handlers = ["access"]
propagate = false
"""

INI = """
[loggers]
keys=root, uvicorn.error, uvicorn.access
[handlers]
keys=error_handler, access_handler
[formatters]
keys=generic, access
[logger_root]
level=INFO
handlers=
[logger_uvicorn.error]
level=INFO
handlers=error_handler
propagate=0
qualname=uvicorn.error
[logger_uvicorn.access]
level=INFO
handlers=access_handler
propagate=0
qualname=uvicorn.access
[handler_error_handler]
class=StreamHandler
formatter=generic
args=(sys.stderr,)
[handler_access_handler]
class=StreamHandler
formatter=access
args=(sys.stdout,)
[formatter_generic]
format=mine %(levelprefix)s %(message)s
class=uvicorn.logging.DefaultFormatter
[formatter_access]
format=mine %(levelprefix)s %(client_addr)s - "%(request_line)s" %(status_code)s
class=uvicorn.logging.AccessFormatter
"""

YAML_STUB = """
import json

class YAMLError(Exception):
    pass

def safe_load(text):
    # JSON is YAML, too.
    try:
        return json.loads(text)
    except ValueError as error:
        raise YAMLError(error) from None
"""

FILES = {
    "log.json": json.dumps(COPIED),
    "log.yaml": json.dumps(COPIED),
    "log.toml": TOML,
    "log.ini": INI,
    "log.conf": INI,
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_made_for_uvicorn_is_used(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FILES[name])
    (tmp_path / "yaml.py").write_text(YAML_STUB)
    environment = {"PYTHONPATH": str(tmp_path)}
    with Server("log_app:app", "--log-config", str(tmp_path / name), env=environment) as server:
        with server.connect() as client:
            port = client.port
            assert client.ask("/hello?x=1").status == 200
            assert client.ask("/nowhere").status == 200
        server.stop()
        line = f'mine INFO:     127.0.0.1:{port} - "GET'
        expected = [f'{line} /hello?x=1 HTTP/1.1" 200 OK', f'{line} /nowhere HTTP/1.1" 200 OK']
        assert server.stdout.splitlines() == expected
        assert server.stderr.splitlines()[0] == f"mine INFO:     Started server process [{server.pid}]"
        assert server.stderr.splitlines()[-1] == f"mine INFO:     Finished server process [{server.pid}]"
        assert server.stderr.count("Shutting down") == 1


# Nothing of ours is named, and `disable_existing_loggers` is on by default.
ROOT: dict[str, Any] = {
    "version": 1,
    "formatters": {"named": {"format": "%(name)s %(levelname)s %(message)s"}},
    "handlers": {"only": {"class": "logging.StreamHandler", "formatter": "named"}},
    "root": {"handlers": ["only"], "level": "INFO"},
}


def test_a_file_that_knows_the_root_alone_silences_nothing(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(json.dumps(ROOT))
    with Server("log_app:app", "--log-config", str(tmp_path / "log.json"), allow=["Traceback"]) as server:
        assert server.ask("/hello").status == 200
        assert server.ask("/fail").status == 500
        server.stop()
    said = server.stderr.splitlines()
    assert said[0] == f"uvicorn.error INFO Started server process [{server.pid}]"
    assert said[-1] == f"uvicorn.error INFO Finished server process [{server.pid}]"
    assert any(
        re.fullmatch(r'uvicorn.access INFO 127.0.0.1:\d+ - "GET /hello HTTP/1.1" 200.*', each)
        for each in said
    )
    assert said.count("uvicorn.error ERROR Exception in ASGI application") == 1
    assert "Traceback (most recent call last):" in said


@pytest.mark.parametrize("silent", [{}, {"log_level": "critical"}, {"root": {"level": "CRITICAL"}}])
def test_a_start_in_code_that_fails_is_never_silent(silent: dict[str, Any]) -> None:
    options = {"log_config": {**ROOT, "root": silent.get("root", ROOT["root"])}}
    options |= {name: value for name, value in silent.items() if name == "log_level"}
    environment = {"LOOP": json.dumps(options)}
    with Server("no_such_module:app", module="bridgehead_run", env=environment, ready=False) as server:
        assert server.wait_exit() == 3
        assert server.stderr.count("there is no module 'no_such_module'") == 1
        assert "hint:" in server.stderr


def test_a_table_in_the_settings_is_a_log_configuration_too(tmp_path: Path) -> None:
    (tmp_path / "serve.toml").write_text(
        TOML.replace("[formatters", "[log-config.formatters")
        .replace("[handlers", "[log-config.handlers")
        .replace("[loggers", "[log-config.loggers")
        .replace("\nversion", "\n[log-config]\nversion")
    )
    with Server("log_app:app", "--config", str(tmp_path / "serve.toml")) as server:
        server.ask("/hello")
        assert server.wait_line("/hello", stream="stdout").startswith("mine INFO: ")


def test_colours_that_are_asked_for_reach_a_configuration_that_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(FILES["log.json"])
    with Server("log_app:app", "--log-config", str(tmp_path / "log.json"), "--use-colors") as server:
        with server.connect() as client:
            port = client.port
            client.ask("/hello")
        line = server.wait_line("/hello", stream="stdout")
        inked = f'127.0.0.1:{port} - "\x1b[1mGET /hello HTTP/1.1\x1b[0m" \x1b[32m200 OK\x1b[0m'
        assert line == f"mine \x1b[32mINFO\x1b[0m:     {inked}\n"
        assert server.stderr.startswith("mine \x1b[32mINFO\x1b[0m:     Started server process [\x1b[36m")


def test_the_level_on_the_command_line_outranks_the_files(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(FILES["log.json"])
    options = ("--log-config", str(tmp_path / "log.json"))
    with Server("log_app:app", *options, "--log-level", "debug") as server:
        server.wait_line("mine DEBUG:    The application's lifespan ended with this.")


def test_the_files_level_is_used_when_no_other_is_given(tmp_path: Path) -> None:
    loud = {**COPIED, "loggers": {**COPIED["loggers"], "uvicorn.error": {"level": "DEBUG"}}}
    (tmp_path / "log.json").write_text(json.dumps(loud))
    with Server("log_app:app", "--log-config", str(tmp_path / "log.json")) as server:
        server.wait_line("mine DEBUG:    The application's lifespan ended with this.")


def test_a_file_may_name_our_own_loggers(tmp_path: Path) -> None:
    ours = {"uvicorn": "bridgehead", "uvicorn.access": "bridgehead.access"}
    named = {ours[name]: each for name, each in COPIED["loggers"].items() if name in ours}
    (tmp_path / "log.json").write_text(json.dumps({**COPIED, "loggers": named}))
    with Server("log_app:app", "--log-config", str(tmp_path / "log.json")) as server:
        server.ask("/hello")
        server.wait_line("mine INFO:     127.0.0.1", stream="stdout")
        server.stop()
        assert server.stderr.count("mine INFO:     Shutting down") == 1
        assert server.stdout.count("/hello") == 1


@pytest.fixture
def _fresh_loggers() -> Any:
    yield
    for name in (
        loggers.OURS,
        loggers.ACCESS,
        loggers.UVICORN,
        loggers.UVICORN_ERROR,
        loggers.UVICORN_ACCESS,
    ):
        known = logging.getLogger(name)
        known.handlers, known.filters, known.propagate, known.disabled = [], [], True, False
        known.setLevel(logging.NOTSET)


@pytest.mark.usefixtures("_fresh_loggers")
def test_a_dictionary_and_a_parser_are_taken_from_python(capsys: pytest.CaptureFixture[str]) -> None:
    parser = ConfigParser()
    parser.read_string(INI)
    for given in (COPIED, parser):
        log.configure(Config(log_config=given))  # type: ignore[arg-type]
        log.stopping()
        assert "mine INFO:     Shutting down\n" in capsys.readouterr().err


@pytest.mark.usefixtures("_fresh_loggers")
def test_none_leaves_logging_alone(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        log.configure(Config(log_config=None))
        log.stopping()
    assert [(each.name, each.getMessage()) for each in caplog.records] == [("uvicorn.error", "Shutting down")]
    assert not [each for each in logging.getLogger("uvicorn").handlers if isinstance(each, loggers.StandIn)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.json", None, "missing.json cannot be read: no such file or directory"),
        ("log.json", "{", "log.json is no valid log configuration: Expecting property name"),
        ("log.json", "[]", "log.json holds no table at its top"),
        ("log.json", "{}", "log.json cannot be used: dictionary doesn't specify a version"),
        ("log.toml", "version = ", "log.toml is no valid log configuration: Invalid value"),
        ("log.ini", "no section", "log.ini is no valid log configuration: File contains no section"),
        ("log.ini", "[loggers]\nkeys=root", "log.ini cannot be used: "),
        (
            "log.json",
            '{"version": 1, "handlers": {"x": {"class": "no.such.Handler"}}}',
            "log.json cannot be used: Unable to configure handler 'x': Cannot resolve 'no.such.Handler'",
        ),
        ("log.yaml", "version: 1", "a log configuration in YAML needs PyYAML, which is not installed"),
    ],
)
@pytest.mark.usefixtures("_fresh_loggers")
def test_a_file_that_cannot_be_used_is_refused_with_the_reason(
    name: str, content: str | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(StartError) as refused:
        log.configure(Config(log_config=name))
    assert refused.value.message.startswith(message)
    assert refused.value.hint


def test_a_file_that_cannot_be_used_ends_the_start(tmp_path: Path) -> None:
    with Server("log_app:app", "--log-config", str(tmp_path / "missing.ini"), ready=False) as server:
        assert server.wait_exit() == 3
        assert "missing.ini cannot be read: no such file or directory" in server.stderr
        assert "check the path of --log-config" in server.stderr
        assert "Traceback" not in server.stderr
