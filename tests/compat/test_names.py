"""`bridgehead.compat.uvicorn`: the names that programs import, with uvicorn's signatures."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bridgehead import StartError
from bridgehead.compat import uvicorn as shim
from bridgehead.compat.uvicorn.config import LOGGING_CONFIG, Config
from bridgehead.compat.uvicorn.server import Server
from bridgehead.uvicorn_parameters import UVICORNS

# What 205 projects of the package index import, each with its module.
IMPORTED = {
    "": ["Config", "Server", "run", "main", "__version__"],
    "main": [
        *("main", "run", "Server", "Config", "STARTUP_FAILURE", "LOGGING_CONFIG", "LOG_LEVELS", "LIFESPAN"),
        *("logger", "ChangeReload", "Multiprocess", "ASGIApplication", "INTERFACES", "SSL_PROTOCOL_VERSION"),
        *("HTTPProtocolType", "WSProtocolType", "LifespanType", "LoopFactoryType", "InterfaceType"),
    ],
    "config": [
        *(
            "Config",
            "LOGGING_CONFIG",
            "LOG_LEVELS",
            "SSL_PROTOCOL_VERSION",
            "STARTUP_FAILURE",
            "INTERFACES",
            "logger",
        ),
        *(
            "create_ssl_context",
            "is_dir",
            "resolve_reload_patterns",
            "ImportFromStringError",
            "import_from_string",
        ),
        *("ASGIApplication", "ASGI2Middleware", "MessageLoggerMiddleware", "ProxyHeadersMiddleware"),
        "WSGIMiddleware",
        *("HTTPProtocolType", "WSProtocolType", "LifespanType", "LoopSetupType", "InterfaceType"),
    ],
    "server": ["Server", "ServerState", "HANDLED_SIGNALS", "logger", "asyncio_run"],
    "logging": ["DefaultFormatter", "AccessFormatter", "ColourizedFormatter", "TRACE_LOG_LEVEL"],
    "importer": ["import_from_string", "ImportFromStringError"],
    "lifespan.on": ["LifespanOn", "STATE_TRANSITION_ERROR", "LifespanReceiveMessage", "LifespanSendMessage"],
    "lifespan.off": ["LifespanOff"],
    "supervisors": ["BaseReload", "ChangeReload", "Multiprocess"],
    "supervisors.multiprocess": ["Multiprocess", "Process"],
    "supervisors.basereload": ["BaseReload"],
    "supervisors.statreload": ["StatReload"],
    "supervisors.watchfilesreload": ["FileFilter", "WatchFilesReload"],
    "_subprocess": ["get_subprocess", "subprocess_started", "spawn", "SpawnProcess"],
    "middleware.proxy_headers": ["ProxyHeadersMiddleware"],
    "middleware.wsgi": ["WSGIMiddleware", "WSGIResponder", "build_environ"],
    "middleware.asgi2": ["ASGI2Middleware"],
    "middleware.message_logger": ["MessageLoggerMiddleware"],
    "protocols.utils": ["ClientDisconnected", "get_client_addr", "get_path_with_query_string"],
    "protocols.http.auto": ["AutoHTTPProtocol"],
    "protocols.http.flow_control": ["FlowControl", "CLOSE_HEADER", "HIGH_WATER_LIMIT", "service_unavailable"],
    "protocols.http.h11_impl": ["H11Protocol", "RequestResponseCycle", "STATUS_PHRASES", "FlowControl"],
    "protocols.http.httptools_impl": ["HttpToolsProtocol", "RequestResponseCycle", "STATUS_LINE"],
    "protocols.http.zttp_impl": ["ZttpProtocol", "RequestResponseCycle"],
    "protocols.websockets.auto": ["AutoWebSocketsProtocol"],
    "_types": [
        "ASGIApplication",
        "ASGI2Protocol",
        "ASGI3Application",
        "Scope",
        "HTTPScope",
        "HTTPResponseDebugEvent",
    ],
    "loops.auto": ["auto_loop_factory"],
    "loops.zuvloop": ["zuvloop_loop_factory"],
}


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answers nobody: no test here serves it."""
    raise NotImplementedError(scope["type"])


@pytest.mark.parametrize("module", IMPORTED)
def test_what_programs_import_is_there(module: str) -> None:
    found = importlib.import_module(f"{shim.__name__}.{module}".rstrip("."))
    assert [name for name in IMPORTED[module] if not hasattr(found, name)] == []


def test_the_signatures_are_real_and_in_uvicorns_order() -> None:
    parameters = inspect.signature(Config.__init__).parameters
    assert [*parameters][: len(UVICORNS) + 1] == ["self", *UVICORNS]
    kinds = {each.kind for each in parameters.values()}
    assert not kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
    named = inspect.signature(shim.run).parameters
    assert {each.kind for name, each in named.items() if name != "app"} == {inspect.Parameter.KEYWORD_ONLY}


def test_the_signature_is_that_of_the_uvicorn_that_is_installed() -> None:
    uvicorn = pytest.importorskip("uvicorn")
    theirs = inspect.signature(uvicorn.Config.__init__).parameters
    ours = inspect.signature(Config.__init__).parameters
    assert [*ours][: len(theirs)] == [*theirs]
    for name, each in theirs.items():
        if name != "log_config":
            assert ours[name].default == each.default, name
    assert uvicorn.__version__ == shim.__version__


def test_arguments_may_be_positional_and_what_nobody_knows_is_a_type_error() -> None:
    config = Config(app, "0.0.0.0", 9000, None, None, "asyncio")
    assert (config.host, config.port, config.loop) == ("0.0.0.0", 9000, "asyncio")
    with pytest.raises(TypeError, match="timeout_keepalive"):
        Config(app, timeout_keepalive=3)


def test_what_is_not_given_has_bridgeheads_default() -> None:
    assert Config(app).timeout_keep_alive == 75
    assert Config(app, timeout_keep_alive=5).timeout_keep_alive == 5


def test_a_protocol_or_a_context_of_pythons_is_refused_with_a_word() -> None:
    class Mine(asyncio.Protocol):
        pass

    with pytest.raises(StartError, match="HTTP is spoken in Rust"):
        Config(app, http=Mine)
    with pytest.raises(StartError, match="WebSockets are spoken in Rust"):
        Config(app, ws=Mine)
    with pytest.raises(StartError, match="TLS is spoken by rustls"):
        Config(app, ssl_context_factory=lambda _, default: default())
    config = Config(app, ws="none")
    assert (config.http_protocol_class.__name__, config.ws_protocol_class) == ("AutoHTTPProtocol", None)
    config.http_protocol_class = config.http_protocol_class
    with pytest.raises(StartError, match="HTTP is spoken in Rust"):
        config.http_protocol_class = Mine
    with pytest.raises(StartError, match="WebSockets are spoken in Rust"):
        config.ws_protocol_class = Mine
    config.ws = "auto"
    config.ws_protocol_class = None
    assert config.ws == "none"
    foreign = importlib.import_module(f"{shim.__name__}.protocols.http.h11_impl").H11Protocol
    with pytest.raises(RuntimeError, match="spoken in Rust"):
        foreign()


def test_a_log_configuration_that_is_changed_in_its_place_holds() -> None:
    assert shim.config.LOGGING_CONFIG is LOGGING_CONFIG
    assert inspect.signature(Config).parameters["log_config"].default is LOGGING_CONFIG


def test_the_class_of_the_lifespan_may_be_assigned() -> None:
    from bridgehead.compat.uvicorn.lifespan.on import LifespanOn

    config = Config(app, log_config=None)
    assert config.lifespan_class is LifespanOn

    class Mine(LifespanOn):
        pass

    config.lifespan_class = Mine
    assert config.lifespan_class is Mine


def test_a_lifespan_is_driven_without_a_server_and_says_how_it_went(caplog: pytest.LogCaptureFixture) -> None:
    from bridgehead.compat.uvicorn.lifespan.on import LifespanOn

    async def failing(_: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no database"})

    async def drive() -> LifespanOn:
        lifespan = LifespanOn(Config(failing, lifespan="on", log_config=None))
        await lifespan.startup()
        await lifespan.shutdown()
        return lifespan

    with caplog.at_level(logging.ERROR, logger="uvicorn.error"):
        lifespan = asyncio.run(drive())
    assert lifespan.should_exit
    assert lifespan.startup_failed


def test_a_lifespans_main_is_the_applications_call() -> None:
    from bridgehead.compat.uvicorn.lifespan.on import LifespanOn

    heard = []

    async def lasting(_: Any, receive: Any, send: Any) -> None:
        heard.append((await receive())["type"])
        await send({"type": "lifespan.startup.complete"})
        heard.append((await receive())["type"])
        await send({"type": "lifespan.shutdown.complete"})

    class Mine(LifespanOn):
        async def main(self) -> None:
            heard.append("before")
            await super().main()
            heard.append("behind")

    async def drive() -> None:
        lifespan = Mine(Config(lasting, lifespan="on", log_config=None))
        await lifespan.startup()
        await lifespan.shutdown()

    asyncio.run(drive())
    assert heard == ["before", "lifespan.startup", "lifespan.shutdown", "behind"]


def test_what_is_loaded_has_the_application_as_its_app_and_is_served_without_what_rust_does() -> None:
    from bridgehead.compat.uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

    config = Config(app, log_config=None)
    config.load()
    assert isinstance(config.loaded_app, ProxyHeadersMiddleware)
    assert config.loaded_app.app is app
    assert config.served_app is app

    async def around(scope: Any, receive: Any, send: Any) -> None:
        raise NotImplementedError

    config.loaded_app.app = around
    assert config.served_app is around
    config.loaded_app = app
    assert config.served_app is app
    plain = Config(app, log_config=None, proxy_headers=False)
    plain.load()
    assert plain.loaded_app is app


def test_who_watches_the_loaded_application_sees_it_assigned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def wrap(config: Config, application: Any) -> None:
        seen.append(application)
        vars(config)["wrapped"] = application

    watched = property(lambda config: vars(config)["wrapped"], wrap)
    monkeypatch.setattr(Config, "loaded_app", watched, raising=False)
    Config(app, log_config=None).load()
    assert len(seen) == 1


def test_none_means_what_it_means_in_uvicorn() -> None:
    off = Config(
        app, log_config=None, server_header=None, date_header=None, access_log=None, proxy_headers=None
    )
    assert (off.server_header, off.date_header, off.access_log, off.proxy_headers) == (False,) * 4
    anywhere = Config(app, log_config=None, host=None, port=None)
    assert (anywhere.host, anywhere.port) == ("", 0)


def test_the_environment_is_heeded_when_a_configuration_is_made_and_its_file_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    for name in ("WEB_CONCURRENCY", "FORWARDED_ALLOW_IPS"):
        monkeypatch.delitem(os.environ, name, raising=False)
    assert Config(app, log_config=None).workers == 1
    assert Config(app, log_config=None).forwarded_allow_ips == "127.0.0.1,::1"
    file = tmp_path / ".env"
    file.write_text("WEB_CONCURRENCY=2\nFORWARDED_ALLOW_IPS=10.0.0.1\n")
    found = Config(app, log_config=None, env_file=file)
    assert (found.workers, found.forwarded_allow_ips) == (2, "10.0.0.1")
    given = Config(app, log_config=None, workers=3, forwarded_allow_ips="*")
    assert (given.workers, given.forwarded_allow_ips) == (3, "*")


def test_a_formatter_may_have_its_own_colours_and_phrases() -> None:
    from bridgehead.compat.uvicorn.logging import AccessFormatter

    class Mine(AccessFormatter):
        level_name_colors = {logging.INFO: str.lower}  # noqa: RUF012 - as programs replace it

        def get_status_code(self, status_code: int) -> str:
            return f"<{status_code}>"

    said = ("1.2.3.4:5", "GET", "/", "1.1", 200)
    record = logging.LogRecord("uvicorn.access", logging.INFO, "", 0, "%s %s %s %s %s", said, None)
    assert Mine("%(levelprefix)s %(status_code)s", use_colors=True).format(record) == "info:     <200>"


def test_a_port_that_is_taken_ends_the_process_where_a_socket_is_bound(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Config(app, port=0).bind_socket() as taken, pytest.raises(SystemExit) as end:
        Config(app, port=taken.getsockname()[1]).bind_socket()
    assert end.value.code == 3
    assert "in use" in capsys.readouterr().err


@pytest.mark.parametrize("find", [Config.load, Config.load_app, lambda config: Server(config).run()])
def test_an_application_that_is_not_there_ends_the_process_where_it_is_loaded(
    find: Callable[[Config], object], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        find(Config("no_such_module:app", port=0))
    assert (end.value.code, type(end.value.__cause__)) == (3, StartError)
    assert capsys.readouterr().err.count("no_such_module") == 1


class Sub(Server):
    """With something of its own, for another process."""

    def __init__(self, config: Config, mine: str) -> None:
        super().__init__(config)
        self.mine = mine


def test_a_server_goes_to_another_process_with_what_a_subclass_has_added() -> None:
    there = pickle.loads(pickle.dumps(Sub(Config("main:app", port=1, log_config=None), "mine")))
    assert (there.config.port, there.mine, there.started) == (1, "mine", False)


def test_an_object_is_found_by_its_words() -> None:
    from bridgehead.compat.uvicorn.importer import ImportFromStringError, import_from_string

    assert import_from_string("os.path:join") is importlib.import_module("os.path").join
    assert import_from_string(app) is app
    for wrong in ("os", "nowhere_at_all:x", "os:nothing"):
        with pytest.raises(ImportFromStringError):
            import_from_string(wrong)


def test_commands_with_uvicorns_options_have_its_choices() -> None:
    click = pytest.importorskip("click")
    testing = importlib.import_module("click.testing")
    main = importlib.import_module(f"{shim.__name__}.main")
    assert [*main.LEVEL_CHOICES.choices] == [*main.LOG_LEVELS]
    assert [*main.LIFESPAN_CHOICES.choices] == ["auto", "on", "off"]
    assert [*main.INTERFACE_CHOICES.choices] == ["auto", "asgi3", "asgi2", "wsgi"]
    option = click.Option(["--version"], is_flag=True, callback=main.print_version, expose_value=False)
    said = testing.CliRunner().invoke(click.Command("mine", params=[option]), ["--version"])
    assert said.output.startswith("Running bridgehead ")


def test_every_name_of_a_protocol_a_loop_or_a_lifespan_leads_to_one() -> None:
    config, found = shim.config, shim.config.import_from_string
    tables = (config.HTTP_PROTOCOLS, config.WS_PROTOCOLS, config.LIFESPAN, config.LOOP_FACTORIES)
    named = [each for table in tables for each in table.values() if each is not None]
    assert all(callable(found(each.replace("uvicorn", shim.__name__, 1))) for each in named)


@pytest.mark.parametrize("module", ["h11_impl", "httptools_impl", "zttp_impl"])
def test_a_cycle_of_uvicorns_protocols_is_refused_where_it_is_made(module: str) -> None:
    cycle = importlib.import_module(f"{shim.__name__}.protocols.http.{module}").RequestResponseCycle
    with pytest.raises(RuntimeError, match="spoken in Rust"):
        cycle()


def test_uvicorns_answer_to_who_is_one_too_many_is_an_application() -> None:
    flow = importlib.import_module(f"{shim.__name__}.protocols.http.flow_control")
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(flow.service_unavailable({}, None, send))
    assert (sent[0]["status"], sent[1]["body"]) == (503, b"Service Unavailable")


def test_a_scope_is_an_environment_of_wsgis() -> None:
    wsgi = importlib.import_module(f"{shim.__name__}.middleware.wsgi")
    scope = {
        "method": "GET",
        "root_path": "/api",
        "path": "/api/items",
        "query_string": b"a=1",
        "http_version": "1.1",
        "client": ("1.2.3.4", 5),
        "headers": [(b"content-type", b"text/plain"), (b"x-a", b"1"), (b"x-a", b"2")],
    }
    environ = wsgi.build_environ(scope, {}, None)
    assert (environ["SCRIPT_NAME"], environ["PATH_INFO"]) == ("/api", "/items")
    assert (environ["CONTENT_TYPE"], environ["HTTP_X_A"]) == ("text/plain", "1,2")
    assert (environ["REMOTE_ADDR"], environ["SERVER_NAME"]) == ("1.2.3.4", "localhost")
    with pytest.raises(RuntimeError, match="use WSGIMiddleware"):
        wsgi.WSGIResponder(app, None, scope)


def test_patterns_and_folders_are_told_apart_as_uvicorn_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outer" / "inner").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    resolve = shim.config.resolve_reload_patterns
    patterns, folders = resolve(["*.html", "outer/inner"], ["outer"])
    assert (sorted(patterns), folders) == (["*.html", "outer/inner"], [tmp_path / "outer"])
    watch = importlib.import_module(f"{shim.__name__}.supervisors.watchfilesreload")
    config = Config("main:app", reload=True, reload_includes=["*.html"], reload_excludes=["outer", "a*.py"])
    wanted = watch.FileFilter(config)
    assert [wanted(Path(each)) for each in ("b.py", "x.html", "abc.py", "outer/b.py", "b.txt")] == [
        *(True, True, False, False, False)
    ]


def test_a_factory_of_loops_that_was_given_is_given_back() -> None:
    assert (
        Config(app, log_config=None, loop=asyncio.new_event_loop).get_loop_factory() is asyncio.new_event_loop
    )


def test_a_file_of_variables_that_is_not_there_stops_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    config = Config(app, env_file="nowhere.env")
    config.load()
    assert config.loaded
    assert "there is no file nowhere.env" in capsys.readouterr().err
