"""The options: one list that the documentation, the environment and Python all agree with."""

import math
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

import pytest

from bridgehead import settings_page
from bridgehead.config import OPTIONS, Config
from bridgehead.errors import StartError
from bridgehead.quantities import seconds, size
from bridgehead.sources import environment, strays

ROOT = Path(__file__).resolve().parent.parent


def test_the_committed_page_is_what_the_options_say() -> None:
    committed = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert committed == settings_page.render(), "python -m bridgehead.settings_page > docs/settings.md"


def test_every_option_is_documented_and_has_a_default() -> None:
    assert {each.name for each in fields(Config)} == {option.name for option in OPTIONS}
    assert all(option.help and option.group for option in OPTIONS)
    assert all(each.default is not MISSING for each in fields(Config))


def test_the_defaults_are_uvicorns_but_for_those_marked() -> None:
    uvicorn = pytest.importorskip("uvicorn")
    theirs = vars(uvicorn.Config("x:app", log_config=None))
    for option in OPTIONS:
        if (
            option.name in theirs
            and not option.differs
            and option.name not in {"app", "headers", "log_level", "log_config"}
        ):
            value = theirs[option.name]
            same = replace(option, default=tuple(value) if isinstance(value, list) else value)
            assert option.shown_default == same.shown_default, option.name


def test_what_differs_from_uvicorn_differs_on_purpose() -> None:
    config = Config()
    assert (config.timeout_keep_alive, config.timeout_graceful_shutdown) == (75.0, 25.0)
    assert (config.timeout_lifespan_startup, config.timeout_lifespan_shutdown) == (60.0, 5.0)


def test_a_valid_configuration_is_read_again_unchanged() -> None:
    config = Config(headers=(("X-A", " b "),), bind=("[::1]:1", "unix:/x"), port="9", use_colors="no")  # type: ignore[arg-type]
    assert replace(config) == config
    assert config.headers == ((b"x-a", b"b"),)
    assert (config.port, config.use_colors) == (9, False)


@pytest.mark.parametrize("name", [o.name for o in OPTIONS if o.name.startswith("timeout_")])
@pytest.mark.parametrize("value", [-1, -0.001, math.nan, math.inf, -math.inf, "soon", "", True])
def test_a_time_that_is_not_one_is_refused(name: str, value: object) -> None:
    with pytest.raises(StartError, match=name):
        Config(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(("value", "expected"), [("0", 0.0), ("2.5", 2.5), (3, 3.0)])
def test_a_time_may_have_a_fraction_and_may_be_zero(value: Any, expected: float) -> None:
    config = Config(timeout_graceful_shutdown=value)
    assert config.timeout_graceful_shutdown == expected
    assert type(config.timeout_graceful_shutdown) is float


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        *(("500us", 0.0005), ("7 \u00b5s", 7e-6), ("7\u03bcs", 7e-6), ("500ms", 0.5), ("7ms", 0.007)),
        *(("30s", 30.0), ("1.5m", 90.0), ("2 h", 7200.0), (" 9 ", 9.0)),
    ],
)
@pytest.mark.parametrize("name", [o.name for o in OPTIONS if o.name.startswith("timeout_")])
def test_a_time_may_have_a_unit(name: str, written: Any, expected: float) -> None:
    assert getattr(Config(**{name: written}), name) == expected


@pytest.mark.parametrize("written", ["ms", "1d", "1 M", "1H", "5ss", "1m30s", "-1s", "nans", "infh"])
def test_a_time_with_another_unit_is_refused_with_those_there_are(written: str) -> None:
    with pytest.raises(StartError) as refused:
        seconds(written)
    assert refused.value.hint == "give seconds, such as 30 or 0.5, or a unit: 500ms, 30s, 2m, 1h"


@pytest.mark.parametrize(
    ("written", "expected"),
    [(0, 0), ("17", 17), ("64k", 65536), ("16M", 2**24), ("1 G", 2**30), ("3KiB", 3072), ("2MiB", 2**21)],
)
def test_a_size_may_have_a_unit_and_is_read_again_unchanged(written: object, expected: int) -> None:
    assert size(written) == size(size(written)) == expected


@pytest.mark.parametrize(
    "written", ["", "k", "-1", "1.5M", "16MB", "5iB", "1kk", "1 kiB k", "x", True, None, 1.0]
)
def test_a_size_that_is_not_one_is_refused(written: object) -> None:
    with pytest.raises(StartError) as refused:
        size(written)
    assert refused.value.hint == "give bytes, or a unit: 64k, 16M, 1G (of 1024)"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", 65536),
        ("port", -1),
        ("port", "http"),
        ("port", True),
        ("port", 1.5),
        ("backlog", -1),
        ("fd", -1),
        ("loop", "uvlop"),
        ("lifespan", "maybe"),
        ("log_level", "loud"),
        ("access_log", "perhaps"),
        ("app", 3),
        ("app_dir", 3),
        ("bind", 3),
        ("bind", ("127.0.0.1",)),
        ("bind", ("::1:80",)),
        ("bind", ("[::1]",)),
        ("bind", ("unix:",)),
        ("bind", ("fd://3x",)),
        ("bind", ("http://x:80",)),
        ("bind", (":80", ":80")),
        ("headers", ("x",)),
        ("headers", ("x y: z",)),
        ("headers", (": z",)),
        ("headers", ("x: a\r\ny: b",)),
        ("headers", ("x: a\nb",)),
        ("headers", ("x: \0",)),
        ("headers", ("x: \N{SNOWMAN}",)),
        ("headers", (("x", 3),)),
        ("headers", ("Content-Length: 3",)),
        ("headers", ("transfer-encoding: chunked",)),
    ],
)
def test_a_bad_value_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(StartError, match=f"^{name}: "):
        Config(**{name: value})  # type: ignore[arg-type]


def test_a_near_word_is_suggested() -> None:
    with pytest.raises(StartError) as refused:
        Config(loop="uvlop")
    assert refused.value.hint == "did you mean `uvloop`?"


def test_capitals_do_not_matter_in_a_log_level() -> None:
    assert Config(log_level="TRACE").log_level == "trace"


def test_the_environment_is_read_under_either_prefix() -> None:
    environ = {"UVICORN_HEADERS": "a:1 b:2", "BRIDGEHEAD_ACCESS_LOG": "off", "BRIDGEHEAD_PORT": ""}
    assert environment(environ, "UVICORN_")["headers"].value == "a:1 b:2"
    assert [*environment(environ, "BRIDGEHEAD_")] == ["access_log"]


def test_a_variable_that_sets_nothing_is_told_with_the_near_name() -> None:
    told = strays(
        {"BRIDGEHEAD_PROT": "1", "BRIDGEHEAD_QQQQ": "1", "UVICORN_VERSION": "2", "BRIDGEHEAD_FD": ""}
    )
    assert told == [
        "BRIDGEHEAD_PROT is not a setting; did you mean BRIDGEHEAD_PORT?",
        "BRIDGEHEAD_QQQQ is not a setting; it is ignored",
        "UVICORN_VERSION is a setting of uvicorn's that is not there yet; it is ignored",
    ]
