"""What is done to uvicorn's access logger while the server runs holds for access lines, as under uvicorn.

The ways are functions of `log_app.py`; one is applied by a request, whose own line is the first that it holds
for. Where nobody took lines when a request came, it has none.
"""

from __future__ import annotations

import pytest
from harness import UVICORN, Server

ours_alone = pytest.mark.skipif(UVICORN, reason="uvicorn looks when a connection is made")


def serve(startup: str = "") -> Server:
    return Server("log_app:app", "--loop", "asyncio", env={"LOGGING_AT_STARTUP": startup})


def lines_after(server: Server, *targets: str) -> list[str]:
    """What stdout has of these requests, all of one connection, whose port is left out."""
    with server.connect() as client:
        port = client.port
        for target in targets:
            assert client.ask(target).status == 200
    server.stop()
    return [line.replace(f":{port}", ":PORT") for line in server.stdout.splitlines()]


def usual(target: str) -> str:
    return f'INFO:     127.0.0.1:PORT - "GET {target} HTTP/1.1" 200 OK'


def sunk(target: str) -> str:
    return f'sink uvicorn.access | INFO | 127.0.0.1:PORT - "GET {target} HTTP/1.1" 200'


def taken_apart(target: str) -> str:
    return f"sink uvicorn.access client=127.0.0.1:PORT method=GET path={target} http=1.1 status=200"


@pytest.mark.parametrize("way", ["intercepted", "intercepted_each"])
def test_a_handler_of_the_lifespans_startup_gets_every_line(way: str) -> None:
    with serve(way) as server:
        assert lines_after(server, "/hello") == [sunk("/hello")]


@ours_alone
@pytest.mark.parametrize("way", ["intercepted", "intercepted_each"])
def test_a_handler_in_the_place_of_ours_gets_every_line_from_then_on(way: str) -> None:
    with serve() as server:
        found = lines_after(server, "/before", f"/apply/{way}", "/after")
        assert sorted(found) == sorted([usual("/before"), sunk(f"/apply/{way}"), sunk("/after")])


@ours_alone
def test_a_configuration_of_all_loggers_is_noticed() -> None:
    with serve() as server:
        found = lines_after(server, "/apply/uvicorns_own", "/after?a=%20b")
        assert found == [taken_apart("/apply/uvicorns_own"), taken_apart("/after?a=%20b")]


@ours_alone
def test_a_handler_beside_ours_comes_and_goes() -> None:
    with serve() as server:
        found = lines_after(server, "/before", "/apply/beside", "/with", "/apply/away", "/after")
        twice = ["/apply/beside", "/with"]
        once = [usual(target) for target in ("/before", *twice, "/apply/away", "/after")]
        assert sorted(found) == sorted([*once, *(sunk(target) for target in twice)])


@ours_alone
def test_a_handler_above_is_noticed_where_records_rise_to_it() -> None:
    with serve("rising") as server:
        found = lines_after(server, "/nobody", "/apply/above", "/after", "/apply/away", "/nobody")
        assert found == [sunk("/after")]


@ours_alone
def test_a_filter_of_a_running_server_is_heard() -> None:
    with serve() as server:
        found = lines_after(server, "/health?1", "/apply/filtered", "/health?2", "/hello")
        assert sorted(found) == sorted([usual("/health?1"), usual("/apply/filtered"), usual("/hello")])


@ours_alone
def test_a_formatter_of_a_running_server_is_used() -> None:
    with serve() as server:
        found = lines_after(server, "/before", "/apply/reformatted", "/after")
        theirs = [
            sunk(each).replace("uvicorn.access | INFO | ", "") for each in ("/apply/reformatted", "/after")
        ]
        assert sorted(found) == sorted([usual("/before"), *theirs])


@ours_alone
def test_a_level_silences_access_lines_and_gives_them_back() -> None:
    with serve() as server:
        found = lines_after(server, "/before", "/apply/quiet", "/nobody", "/apply/louder", "/after")
        assert found == [usual("/before"), usual("/after")]


@ours_alone
@pytest.mark.parametrize("way", ["swept", "disabled"])
def test_a_logger_that_is_disabled_later_is_so_only_if_it_was_meant(way: str) -> None:
    with serve() as server:
        found = lines_after(server, "/before", f"/apply/{way}", "/after")
        after = [usual("/apply/swept"), usual("/after")] if way == "swept" else []
        assert found == [usual("/before"), *after]
