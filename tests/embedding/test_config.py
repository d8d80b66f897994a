"""`bridgehead.Config`: options as keywords and as attributes, and what is refused."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import inspect
import logging
import os
import subprocess
import sys
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any

import pytest
from embedded_app import App
from harness import UVICORN
from harness.embedded import InThread, heard, server_of

import bridgehead
from bridgehead import Config, Server, StartError
from bridgehead.config import OPTIONS
from bridgehead.loggers import StandIn
from bridgehead.loop_name import in_words
from bridgehead.server_config import ServerLifespan
from bridgehead.uvicorn_parameters import UVICORNS

pytestmark = pytest.mark.skipif(UVICORN, reason="these run Bridgehead by its own names")


BESIDE = {"callback_notify", "timeout_notify", "ssl_context_factory"}  # uvicorn's, which are no options


def test_every_option_is_a_keyword_of_run_and_the_application_comes_first() -> None:
    parameters = inspect.signature(bridgehead.run).parameters
    assert next(iter(parameters)) == "app"
    assert set(parameters) == {option.name for option in OPTIONS} | {"ssl_context_factory"}
    kinds = [each.kind for each in parameters.values()]
    assert kinds[0] == inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert set(kinds[1:]) == {inspect.Parameter.KEYWORD_ONLY}
    with pytest.raises(TypeError, match="positional"):
        bridgehead.run("main:app", "0.0.0.0")  # type: ignore[call-arg]


def test_a_configuration_takes_what_uvicorns_takes_in_its_order_and_ours_by_keyword() -> None:
    parameters = inspect.signature(Config).parameters
    assert [*parameters][: len(UVICORNS)] == [*UVICORNS]
    assert set(parameters) == {option.name for option in OPTIONS} | BESIDE
    ours = [each.kind for name, each in parameters.items() if name not in UVICORNS]
    assert set(ours) == {inspect.Parameter.KEYWORD_ONLY}
    config = Config("main:app", "0.0.0.0", 80, None, None, "asyncio")  # type: ignore[call-arg, arg-type]
    assert (config.host, config.port, config.loop) == ("0.0.0.0", 80, "asyncio")
    assert not config.is_ssl
    assert config.ssl is None


def test_paths_may_be_paths_and_patterns_may_be_one() -> None:
    here = Path("here and there")
    config = Config("main:app", app_dir=here, uds=here, env_file=here, reload_dirs=here)  # type: ignore[arg-type]
    assert (config.app_dir, config.uds, config.env_file) == (str(here),) * 3
    assert config.reload_dirs == (str(here),)
    assert Config("main:app", reload_includes="with blanks.txt").reload_includes == ("with blanks.txt",)  # type: ignore[arg-type]
    config.ssl_certfile = here  # type: ignore[assignment]
    assert config.ssl_certfile == str(here)
    assert config.is_ssl


def test_protocols_and_contexts_of_pythons_are_refused_with_a_word() -> None:
    class Mine(asyncio.Protocol):
        pass

    options: dict[str, Any]
    for options, says in (
        ({"http": Mine}, "HTTP is spoken in Rust"),
        ({"ws": Mine}, "WebSockets are spoken in Rust"),
        ({"ssl_context_factory": print}, "TLS is spoken by rustls"),
    ):
        with pytest.raises(StartError, match=says):
            Config("main:app", **options)


def test_a_callback_is_told_that_the_server_lives() -> None:
    told: list[int] = []

    async def notify() -> None:
        told.append(len(server.server_state.tasks))
        server.should_exit = len(told) == 2

    server = Server(Config(App(), port=0, callback_notify=notify, timeout_notify=0))  # type: ignore[call-arg]
    server.run()
    assert told == [0, 0]
    assert server.last_notified > 0


def test_the_class_of_the_lifespan_may_be_assigned() -> None:
    config = Config(App(), port=0, log_level="warning")
    made: list[Any] = []

    class Mine(ServerLifespan):
        async def startup(self) -> None:
            made.append(self)
            await super().startup()

    config.lifespan_class = Mine
    with InThread(Server(config)) as running:
        assert running.ask("/").status == 200
        assert made == [running.server.lifespan]


def test_uvicorns_names_mean_the_same() -> None:
    config = Config("main:app", host="0.0.0.0", port=80, root_path="/x", headers=[("A", "b")], backlog=7)  # type: ignore[arg-type]
    assert (config.app, config.host, config.port, config.root_path) == ("main:app", "0.0.0.0", 80, "/x")
    assert (config.headers, config.backlog) == (((b"a", b"b"),), 7)
    assert not config.loaded


def test_what_is_almost_an_option_is_told_by_its_near_name() -> None:
    for call in (Config, bridgehead.run):
        with pytest.raises(TypeError, match=r"unexpected keyword argument 'prot'; did you mean `port`\?$"):
            call("main:app", prot=3)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match=r"unexpected keyword argument 'nonsense'$"):
            call("main:app", nonsense=3)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match=r"missing a required argument: 'app'$"):
            call(prot=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("name", ["ssl_certfil", "workers_", "nonsense"])
def test_what_is_no_option_is_a_type_error(name: str) -> None:
    with pytest.raises(TypeError, match=name):
        Config("main:app", **{name: "x"})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=name):
        bridgehead.run("main:app", **{name: "x"})  # type: ignore[arg-type]


def test_a_wrong_value_is_refused_when_it_is_given_and_when_it_is_assigned() -> None:
    with pytest.raises(StartError, match="port"):
        Config("main:app", port=-1)
    config = Config("main:app")
    with pytest.raises(StartError, match="lifespan"):
        config.lifespan = "perhaps"
    assert config.lifespan == "auto"
    config.port = 9000
    assert config.port == 9000


def test_none_is_the_default_but_for_the_log_configuration() -> None:
    names = [option.name for option in OPTIONS if option.name != "app" and not option.takes_none]
    assert Config("main:app", log_config=None).log_config is None
    given: dict[str, Any] = dict.fromkeys(names)
    config = Config("main:app", **given)
    assert dataclasses.asdict(config) == dataclasses.asdict(Config("main:app"))


def test_a_log_level_may_be_an_enumeration_or_a_number() -> None:
    class Level(StrEnum):
        QUIET = "warning"

    class Old(str, Enum):  # noqa: UP042 - as older programs have it
        QUIET = "error"

    assert Config("main:app", log_level=Level.QUIET).log_level == "warning"
    assert Config("main:app", log_level=Old.QUIET).log_level == "error"
    assert Config("main:app", log_level=logging.CRITICAL).log_level == "critical"
    assert Config("main:app", log_level=15).log_level == 15
    assert logging.getLogger("uvicorn.error").getEffectiveLevel() == 15
    with pytest.raises(StartError, match="log_level: -1 is not a level"):
        Config("main:app", log_level=-1)


def test_a_configuration_loads_once_and_says_what() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None: ...

    config = Config(app)
    config.load()
    assert config.loaded
    assert config.loaded_app is app
    assert (config.interface, config.asgi_version) == ("asgi3", "3.0")
    config.load()


def test_loading_what_is_not_there_raises_what_is_wrong_and_what_to_do() -> None:
    with pytest.raises(StartError, match=r"no_such_module[^$]*hint: "):
        Config("no_such_module:app").load()


@pytest.mark.parametrize("factory", [True, False])
def test_a_factory_is_called(factory: bool) -> None:
    app = App("made")

    def make() -> App:
        return app

    with heard() as lines, InThread(server_of(make, factory=factory)) as running:
        assert running.ask("/").body == b"hello from made"
    assert any("factory=True" in line for line in lines) != factory


def test_an_application_may_be_asgi2_or_wsgi() -> None:
    pytest.importorskip("a2wsgi")

    class Asgi2:
        def __init__(self, scope: Any) -> None:
            self.scope = scope

        async def __call__(self, receive: Any, send: Any) -> None:
            await App("asgi2")(self.scope, receive, send)

    def wsgi(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return [f"hello from {environ['wsgi.url_scheme']}".encode()]

    with InThread(server_of(Asgi2)) as running:
        assert running.ask("/").body == b"hello from asgi2"
        assert running.server.config.asgi_version == "2.0"
    with InThread(server_of(wsgi, interface="wsgi")) as running:
        assert running.ask("/").body == b"hello from http"
    with pytest.raises(SystemExit):
        server_of(wsgi).run()


def test_an_env_file_is_read_before_the_application_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_FILE", "")
    monkeypatch.delenv("OF_THE_FILE")
    (tmp_path / "variables").write_text("OF_THE_FILE=there\n")

    def make() -> App:
        return App(os.environ["OF_THE_FILE"])

    options: dict[str, Any] = {"factory": True, "env_file": str(tmp_path / "variables")}
    with InThread(server_of(make, **options)) as running:
        assert running.ask("/").body == b"hello from there"


def test_making_a_configuration_leaves_the_roots_handlers_and_those_of_our_own_loggers() -> None:
    root, ours, own = logging.getLogger(), logging.getLogger("bridgehead"), logging.NullHandler()
    ours.addHandler(own)
    try:
        before = (root.level, root.handlers[:])
        Server(Config("main:app", log_level="debug"))
        assert (root.level, root.handlers[:]) == before
        assert own in ours.handlers
    finally:
        ours.removeHandler(own)


OF_UVICORNS = ("uvicorn", "uvicorn.error", "uvicorn.access")


@pytest.mark.parametrize(
    "names", [OF_UVICORNS, *((each,) for each in OF_UVICORNS), ("uvicorn", "uvicorn.access")]
)
def test_handlers_that_uvicorns_loggers_had_before_make_room_for_ours_as_in_uvicorn(
    names: tuple[str, ...],
) -> None:
    own = logging.NullHandler()
    loggers = [logging.getLogger(name) for name in OF_UVICORNS]
    for each in loggers:
        each.handlers, each.propagate = [], True
        each.setLevel(logging.NOTSET)
    try:
        for name in names:
            logging.getLogger(name).addHandler(own)
        Config("main:app")
        assert [[type(each) for each in logger.handlers] for logger in loggers] == [[StandIn], [], [StandIn]]
        assert [logger.getEffectiveLevel() for logger in loggers] == [logging.INFO] * 3
        assert [logger.propagate for logger in loggers] == [False, True, False]
    finally:
        for each in loggers:
            each.removeHandler(own)


def test_nothing_of_a_log_configuration_is_left_when_the_next_server_is_configured() -> None:
    first = copy.deepcopy(bridgehead.config.LOGGING_CONFIG)
    first["loggers"]["uvicorn.access"]["handlers"] = ["access", "default"]
    Config("main:app", log_config=first)
    Config("main:app", log_level="warning")
    access = logging.getLogger("uvicorn.access")
    assert [type(each) for each in access.handlers] == [StandIn]
    assert access.level == logging.getLogger("uvicorn.error").level == logging.WARNING


def test_workers_are_a_number_or_auto() -> None:
    assert Config("main:app", workers=None).workers == 1
    assert [Config("main:app", workers=each).workers for each in (1, "4", "AUTO")] == [1, 4, "auto"]
    assert Config("main:app", workers=2).use_subprocess
    assert Config("main:app", workers=0).workers == 1  # as in uvicorn
    with pytest.raises(StartError, match="workers: -1 is not a whole number from 0 to 512, nor 'auto'"):
        Config("main:app", workers=-1)


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("limit_max_requests", 2**31 - 1),
        ("limit_max_requests_jitter", 2**31 - 1),
        ("limit_concurrency", 2**31 - 1),
        ("backlog", 2**31 - 1),
        ("ws_max_size", 2**40),
        ("ws_max_queue", 10_000),
        ("h11_max_incomplete_event_size", 16 * 1024**2),
        ("timeout_keep_alive", 1e8),
        ("timeout_graceful_shutdown", 1e8),
        ("ws_ping_timeout", 1e8),
        ("limit_body", 2**62),
    ],
)
def test_what_programs_write_for_no_limit_is_the_largest_that_there_is(name: str, most: float) -> None:
    assert getattr(Config("main:app", **{name: sys.maxsize}), name) == most  # type: ignore[arg-type]


def test_files_of_tls_are_as_they_were_given_and_an_empty_text_is_none() -> None:
    given = Config("main:app", ssl_certfile="c.pem", ssl_keyfile=Path("k.pem"))  # type: ignore[arg-type]
    assert (given.ssl_certfile, given.ssl_keyfile) == ("c.pem", "k.pem")
    assert (given.certificate_files, given.key_files) == (("c.pem",), ("k.pem",))
    several = Config("main:app", ssl_certfile=["c.pem", "d.pem"])  # type: ignore[arg-type]
    assert several.ssl_certfile == several.certificate_files == ("c.pem", "d.pem")
    for nothing in (None, "", [""], ()):
        none = Config("main:app", ssl_certfile=nothing, ssl_keyfile=nothing, ssl_ca_certs="")  # type: ignore[arg-type]
        assert (none.ssl_certfile, none.ssl_keyfile, none.ssl_ca_certs) == (None, None, None)
        assert not none.is_ssl


def test_what_uvicorns_configuration_tells_ours_tells_too() -> None:
    config = Config("main:app", reload=True, headers=[("X-A", "b")])  # type: ignore[arg-type]
    assert (config.should_reload, config.use_subprocess, config.is_ssl) == (True, True, False)
    assert config.encoded_headers == [(b"server", b"bridgehead"), (b"x-a", b"b")]
    config.server_header = False
    assert config.encoded_headers == [(b"x-a", b"b")]
    config.reload = False
    assert not config.should_reload


CHANGED = """
import bridgehead
config = bridgehead.config.LOGGING_CONFIG
config["formatters"]["default"]["fmt"] = "mine %(levelprefix)s %(message)s"
bridgehead.run("no_such_module:app", {log_config})
"""


@pytest.mark.parametrize("log_config", ["", "log_config=config"])
def test_a_program_may_change_the_logging_configuration_as_it_does_uvicorns(log_config: str) -> None:
    program = CHANGED.format(log_config=log_config)
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert shown.returncode == 3
    assert shown.stderr.startswith("mine ERROR:    there is no module 'no_such_module'")


def test_importing_bridgehead_loads_none_of_it() -> None:
    program = "import sys, bridgehead; print([n for n in sys.modules if n.startswith('bridgehead.')])"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_load_of_a_subclass_is_called_once_for_a_server() -> None:
    called: list[str] = []

    class Mine(Config):
        def load(self) -> None:
            super().load()
            called.append("load")
            inside = self.loaded_app

            async def around(scope: Any, receive: Any, send: Any) -> None:
                called.append(scope["type"])
                await inside(scope, receive, send)

            self.loaded_app = around

    with InThread(Server(Mine(App(), port=0, lifespan="off", log_level="error"))) as running:
        assert running.ask("/").status == 200
        assert running.ask("/").status == 200
    assert called == ["load", "http", "http"]


made: list[asyncio.AbstractEventLoop] = []


def make_loop() -> asyncio.AbstractEventLoop:
    made.append(asyncio.new_event_loop())
    return made[-1]


def test_a_function_that_makes_a_loop_is_taken_for_the_loop() -> None:
    made.clear()
    config = Config(App(), port=0, loop=make_loop, lifespan="off", log_level="error")
    with InThread(Server(config)) as running:
        assert running.ask("/").status == 200
    assert len(made) == 1
    config.get_loop_factory()().close()
    assert len(made) == 2
    with pytest.raises(SystemExit):
        Server(Config(App(), port=0, loop=dict)).run()


def test_a_loops_function_goes_to_other_processes_by_its_name_or_not_at_all() -> None:
    assert in_words("auto") == "auto"
    assert in_words(asyncio.new_event_loop) == "asyncio.events:new_event_loop"
    assert in_words(make_loop) == f"{__name__}:make_loop"
    with pytest.raises(StartError, match="other processes cannot import it"):
        in_words(lambda: None)
