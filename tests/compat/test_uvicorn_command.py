"""`uvicorn.main`, the command, as programs have it that are commands of click's themselves."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import click
import pytest
from click.testing import CliRunner

from bridgehead.compat import uvicorn as shim
from bridgehead.uvicorn_parameters import OF_RUN

Given = dict[str, Any]


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Given:
    """What the command's callback was called with, instead of serving that."""
    given: Given = {}
    monkeypatch.setattr(shim.main, "callback", lambda **options: given.update(options))
    monkeypatch.setattr(shim.main, "params", list(shim.main.params))
    return given


def test_the_command_lists_uvicorns_parameters_and_then_ours() -> None:
    assert isinstance(shim.main, click.Command)
    names = [each.name for each in shim.main.params]
    uvicorns = [name for name in OF_RUN.parameters if name in names]
    assert names[: len(uvicorns)] == uvicorns
    assert {"app", "host", "reload_dirs", "proxy_headers", "app_dir", "static"} <= {*names}
    shown = CliRunner().invoke(shim.main, ["--help"])
    assert (shown.exit_code, shown.output.count("--timeout-keep-alive")) == (0, 1)


def test_the_command_has_every_parameter_of_the_uvicorn_that_is_installed() -> None:
    uvicorn = pytest.importorskip("uvicorn")
    theirs = {each.name: {*each.opts, *each.secondary_opts} for each in uvicorn.main.params}
    ours = {each.name: {*each.opts, *each.secondary_opts} for each in shim.main.params}
    assert {name: words for name, words in theirs.items() if not words <= ours.get(name, set())} == {
        "version": {"--version"}  # a word of our own parser's
    }


def test_a_callback_that_replaces_run_has_the_options_that_were_written(given: Given) -> None:
    words = ["shop:app", "--port", "99", "--no-proxy-headers", "--reload-dir=one", "--reload-dir", "two"]
    done = CliRunner(env={"UVICORN_HOST": "0.0.0.0"}).invoke(shim.main, words, catch_exceptions=False)
    assert (done.exit_code, done.output) == (0, "")
    assert {name: given[name] for name in ("app", "host", "port", "proxy_headers", "reload_dirs")} == {
        "app": "shop:app",
        "host": "0.0.0.0",
        "port": 99,
        "proxy_headers": False,
        "reload_dirs": ("one", "two"),
    }


def test_options_that_a_program_adds_are_read_beside_ours(given: Given) -> None:
    added = click.option("--driver", default="chrome")(click.option("--url", type=int)(shim.main))
    CliRunner().invoke(added, ["--url", "7", "shop:app", "--port", "99"], catch_exceptions=False)
    assert {name: given[name] for name in ("app", "port", "url", "driver")} == {
        "app": "shop:app",
        "port": 99,
        "url": 7,
        "driver": "chrome",
    }
    assert "--driver" in CliRunner().invoke(added, ["--help"]).output
    environ = {"UVICORN_DRIVER": "firefox"}
    CliRunner(env=environ).invoke(added, ["shop:app"], catch_exceptions=False)
    assert given["driver"] == "firefox"


def test_the_command_may_be_one_of_a_group_or_called_by_another(given: Given) -> None:
    @click.group()
    def shop() -> None: ...

    @shop.command()
    @click.pass_context
    def start(context: click.Context) -> None:
        context.invoke(shim.main, app="shop:app", port=99)

    shop.add_command(shim.main, name="serve")
    CliRunner().invoke(shop, ["serve", "shop:app", "--port", "98"], catch_exceptions=False)
    assert (given["app"], given["port"]) == ("shop:app", 98)
    CliRunner().invoke(shop, ["start"], catch_exceptions=False)
    assert (given["app"], given["port"], given["host"]) == ("shop:app", 99, "127.0.0.1")
    config = shim.Config(**given | {"log_config": None})
    assert (config.port, config.timeout_keep_alive) == (99, 5)


def test_a_mistake_ends_with_what_serve_says_of_it() -> None:
    refused = CliRunner().invoke(shim.main, ["shop:app", "--prot", "99"])
    assert refused.exit_code == shim.config.STARTUP_FAILURE
    assert "bridgehead: error: there is no option '--prot'" in refused.output
    with pytest.raises(click.ClickException, match="there is no option '--prot'"):
        shim.main(["shop:app", "--prot", "99"], standalone_mode=False)


def test_without_click_the_command_is_a_callable() -> None:
    program = "import sys; sys.modules['click'] = None\nfrom bridgehead.compat.uvicorn import main\n"
    program += "main.callback = lambda **options: print(options['port'])\nmain(['shop:app', '--port', '99'])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=True
    )
    assert done.stdout == "99\n"
