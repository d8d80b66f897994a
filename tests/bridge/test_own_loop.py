"""What applications do to a loop itself works in each runtime."""

from __future__ import annotations

import pytest
from harness import HAS_FUSED, UVICORN, Server, request
from harness.server import COMPLAINTS


@pytest.mark.skipif(UVICORN, reason="uvicorn has no runtimes")
@pytest.mark.parametrize("runtime", ["fused", "auto", "threaded"])
def test_a_fused_runtime_that_cannot_be_had_of_a_loop_of_another_make_is_told(runtime: str) -> None:
    if runtime == "fused" and not HAS_FUSED:
        pytest.skip("the fused runtime is Linux's")
    # A way that `--loop` has for any function that makes a loop.
    options = ("--loop", "asyncio:SelectorEventLoop", "--runtime", runtime)
    with Server("lifecycle_app:app", *options) as server:
        assert server.ask("/hello").status == 200
        server.stop()
        told = "runtime is fused, but a loop that is not Bridgehead's own is left alone"
        assert server.stderr.count(told) == (runtime == "fused")


@pytest.mark.skipif(UVICORN, reason="the names of loops are ours")
def test_a_handler_may_stop_the_loop(loop: str) -> None:
    with Server("lifecycle_app:app", "--loop", loop, allow=COMPLAINTS) as server, server.connect() as client:
        client.send(request("/stop-the-loop"))
        assert server.wait_exit() != 0
        assert "Event loop stopped" in server.stderr


@pytest.mark.parametrize("runtime", ["fused", "threaded"])
def test_debug_mode_tells_of_a_handler_that_blocks(runtime: str) -> None:
    options = ("--loop", "asyncio", "--runtime", runtime)
    env = {"PYTHONASYNCIODEBUG": "1"}
    with Server("lifecycle_app:app", *options, env=env, allow=COMPLAINTS) as server:
        assert server.ask("/block?seconds=0.2").status == 200
        assert "Executing" in server.wait_line("took 0.2")


@pytest.mark.skipif(UVICORN, reason="the names of loops are ours")
@pytest.mark.parametrize("tasks", ["", "-rust"])
@pytest.mark.parametrize("first", ["the-first-step", "a-callback", "a-step-of-the-drains"])
@pytest.mark.parametrize("name", ["fused", "asyncio"])
def test_requests_begin_and_go_on_in_a_turn_that_a_handler_makes_of_the_loop_itself(
    name: str, first: str, tasks: str
) -> None:
    if name == "fused" and not HAS_FUSED:
        pytest.skip("the fused runtime is Linux's")
    server = Server("own_loop_app:app", "--loop", name + tasks)
    with server, server.connect() as reads, server.connect() as turns, server.connect() as steps:
        reads.send(b"POST /read?name=read HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\n\r\n")
        server.wait_line("app: reads")
        turns.send(f"POST /within?until=read,step&from={first} HTTP/1.1\r\nHost: test\r\n".encode())
        turns.send(b"Content-Length: 4\r\n\r\n")
        if first == "a-step-of-the-drains":
            server.wait_line("app: waits for its body")
        turns.send(b"body")
        server.wait_line("app: turns the loop")
        reads.send(b"kept")
        assert reads.read_response(method="POST").body == b"kept"
        assert steps.ask("/step?name=step").body == b"stepped"
        assert turns.read_response(method="POST").body == b"turned"


@pytest.mark.skipif(UVICORN, reason="the names of loops are ours")
@pytest.mark.parametrize("name", ["asyncio", "fused", "fused-rust"])
def test_a_timer_that_takes_the_place_of_one_which_a_handlers_turn_of_the_loop_took_fires(name: str) -> None:
    if name.startswith("fused") and not HAS_FUSED:
        pytest.skip("the fused runtime is Linux's")
    with Server("own_loop_app:app", "--loop", name) as server, server.connect() as client:
        client.send(b"POST /take-a-timer HTTP/1.1\r\nHost: test\r\nContent-Length: 1\r\n\r\n")
        server.wait_line("app: waits")
        client.send(b"x")
        assert client.read_response(method="POST").body == b"slept"


@pytest.mark.skipif(UVICORN, reason="the names of loops are ours")
@pytest.mark.parametrize("name", ["asyncio", "fused"])
def test_a_forked_child_may_poll_the_loop_that_it_inherited(name: str) -> None:
    if name == "fused" and not HAS_FUSED:
        pytest.skip("the fused runtime is Linux's")
    with Server("own_loop_app:app", "--loop", name) as server, server.connect() as client:
        for _ in range(10):
            assert client.ask("/fork-and-poll").json() == 0


@pytest.mark.parametrize("tasks", ["asyncio", "rust"])
@pytest.mark.parametrize("knows", [{}, {"KNOWS": "context"}], ids=["two-arguments", "all"])
def test_a_request_is_a_task_of_the_applications_own_factory(
    loop: str, tasks: str, knows: dict[str, str]
) -> None:
    options = ("--loop", loop.removesuffix("-rust"), "--task-impl", tasks)
    with Server("own_loop_app:app", *options, env={"FACTORY": "1", **knows}) as server:
        clients = [server.connect() for _ in range(3)]
        for number, client in enumerate(clients):
            target = f"/marked?name={number}"
            client.send(f"POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n".encode())
        for number, client in enumerate(clients):
            client.send(b"x")
            assert client.read_response(method="POST").json() == [True, str(number), "in the lifespan"]
            client.close()
        server.stop()
        assert server.stderr.count("task factory, not of --task-impl rust: make_marked.") == (tasks == "rust")


def test_the_trace_says_that_it_shows_nothing_of_tasks_of_an_applications_factory() -> None:
    env = {"FACTORY": "1", "BRIDGEHEAD_TRACE": "drive"}
    with Server("own_loop_app:app", "--task-impl", "rust", env=env) as server:
        server.wait_line("BRIDGEHEAD_TRACE=drive shows nothing")


def test_a_loops_call_soon_that_an_application_has_set_stays_until_it_takes_it_away(loop: str) -> None:
    server = Server("own_loop_app:app", "--loop", loop, env={"COUNTS": "1"})
    with server, server.connect() as client:
        for _ in range(3):
            assert client.ask("/counted").json() == [True, True, True]
        client.ask("/uncounted")
        for _ in range(2):
            assert client.ask("/counted").json() == [False, False, False]
