"""gunicorn's and granian's words: as ours, or told of by name."""

from __future__ import annotations

import re

import pytest

from bridgehead.aliases import (
    ALIASES,
    GRANIANS,
    GUNICORNS,
    LOGS,
    MEANINGLESS,
    MEANINGLESS_SWITCHES,
    SWITCHES,
    VALUES,
    written_out,
)
from bridgehead.cli import read_config
from bridgehead.command_line import WORDS, read_command_line
from bridgehead.config import OPTIONS
from bridgehead.errors import StartError
from bridgehead.successors import SUCCESSORS

OURS = {word for option in OPTIONS for word in option.flags.split("/")} | {word.flag for word in WORDS}


def test_a_command_line_of_gunicorns_means_the_same() -> None:
    words = "x:app -b :9000 -w 3 -t 60 --graceful-timeout 20 --keep-alive=5 --chdir src --backlog 7"
    config = read_config(words.split(), {})
    assert (config.bind, config.workers, config.timeout_worker_healthcheck) == ((":9000",), 3, 60)
    assert (config.timeout_graceful_shutdown, config.timeout_keep_alive) == (20, 5)
    assert (config.app_dir, config.backlog) == ("src", 7)


def test_a_short_word_may_be_joined_with_its_value() -> None:
    config = read_config(["x:app", "-w4", "-b:80"], {})
    assert (config.workers, config.bind) == (4, (":80",))


@pytest.mark.parametrize("words", [["-p", "3000"], ["-p3000"], ["-p=3000"]])
def test_a_number_behind_p_is_a_port_and_no_pidfile(words: list[str]) -> None:
    with pytest.raises(StartError, match="'3000' is no pidfile") as refused:
        read_config(["x:app", *words], {})
    assert refused.value.hint == "write --port 3000"
    assert read_config(["x:app", "-p", "run/3000"], {}).pidfile == "run/3000"


def test_a_command_line_of_granians_means_the_same() -> None:
    words = "x:app --backpressure 50 --url-path-prefix /api --ssl-certificate c --ssl-keyfile k"
    config = read_config(words.split(), {})
    assert (config.limit_concurrency, config.root_path) == (50, "/api")
    assert config.ssl_certfile == ("c",)


@pytest.mark.parametrize(
    "words",
    [
        *(
            ["-k", "uvicorn.workers.UvicornWorker"],
            ["--worker-class=x"],
            ["--threads", "4"],
            ["--no-sendfile"],
        ),
        *(["--preload"], ["--name", "shop"], ["--process-name=shop"]),
    ],
)
def test_what_has_no_meaning_is_one_warning_that_names_it(words: list[str]) -> None:
    line = read_command_line(["x:app", *words, "--port", "9"])
    [sentence] = line.doubts
    assert sentence.startswith(words[0].partition("=")[0])
    assert line.given["port"].value == "9"
    assert line.given["app"].value == "x:app"


@pytest.mark.parametrize("flag", [*LOGS])
def test_a_log_that_goes_where_it_goes_here_is_taken_and_a_file_is_refused(flag: str) -> None:
    for words in ([flag, "-"], [f"{flag}=-"]):
        line = read_command_line(["x:app", *words, "--port", "9"])
        assert not line.doubts
        assert line.given["port"].value == "9"
    with pytest.raises(StartError, match=f"{flag}: there is no option for a file") as refused:
        read_config(["x:app", flag, "/var/log/shop.log"], {})
    assert "redirect" in refused.value.hint


def test_a_value_of_granians_is_taken_for_ours() -> None:
    assert read_config(["x:app", "--interface", "asgi", "--no-ws"], {}).interface == "asgi3"
    assert read_config(["x:app", "--interface=asgi", "--no-ws"], {}).ws == "none"
    assert read_config(["x:app", "--interface", "wsgi"], {}).interface == "wsgi"
    with pytest.raises(StartError, match="--interface: 'rsgi' is not one of"):
        read_config(["x:app", "--interface", "rsgi"], {})
    with pytest.raises(StartError, match="--interface: expected one argument"):
        read_config(["x:app", "--interface"], {})


def test_no_word_of_ours_is_an_alias_and_each_alias_is_for_a_word_of_ours() -> None:
    theirs = ALIASES.keys() | LOGS.keys() | MEANINGLESS.keys() | MEANINGLESS_SWITCHES.keys() | SWITCHES.keys()
    assert not OURS & theirs
    assert VALUES.keys() <= OURS
    assert not GUNICORNS.keys() & GRANIANS.keys()
    assert set(ALIASES.values()) <= OURS


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("--graceful-timeot", "--graceful-timeout"),
        ("--max-request=3", "--max-requests"),
        ("--working-dirs", "--working-dir"),
        ("--error-logfil", "--error-logfile"),
        ("--no-wss", "--no-ws"),
        ("--ssl-certificat", "--ssl-certificate"),
        ("--ssl-certfil", "--ssl-certfile"),
        ("--timeout-keep-aliv", "--timeout-keep-alive"),
    ],
)
def test_what_is_almost_an_alias_is_told_by_the_alias(word: str, meant: str) -> None:
    with pytest.raises(StartError, match="there is no option") as refused:
        read_config(["x:app", word], {})
    assert refused.value.hint == f"did you mean `{meant}`?"


def test_other_words_stay_as_they_are() -> None:
    known = frozenset(OURS)
    assert written_out(["x:app", "--port=1", "--nonsense", "-x"], known) == (
        ["x:app", "--port=1", "--nonsense", "-x"],
        [],
    )
    with pytest.raises(StartError, match="there is no option '--nonsense'"):
        read_config(["x:app", "--nonsense"], {})


@pytest.mark.parametrize("word", SUCCESSORS)
def test_a_word_that_is_refused_says_what_is_written_instead(word: str) -> None:
    with pytest.raises(StartError) as caught:
        read_command_line(["main:app", word, "value"])
    assert (caught.value.message, caught.value.hint) == (f"there is no option {word!r}", SUCCESSORS[word])
    assert set(re.findall(r"--[a-z][a-z0-9-]+", SUCCESSORS[word])) <= OURS
    theirs = ALIASES.keys() | LOGS.keys() | MEANINGLESS.keys() | MEANINGLESS_SWITCHES.keys() | SWITCHES.keys()
    assert word not in theirs
