"""A handler is an asyncio task like any other, on every loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from harness import Server, request

FEATURES = {
    "timeout": "timed out",
    "wait-for": "timed out",
    "task-group": "[0, 2, 4]",
    "failing-task-group": "caught",
    "cancel-self": "cancelled once",
    "anyio-task-group": "[0, 1, 2]",
    "anyio-move-on-after": "moved on",
    "anyio-fail-after": "timed out",
    "anyio-cancel-scope": "cancelled",
    "to-thread": "6",
    "anyio-to-thread": "6",
    "call-soon-threadsafe": "woken",
    "executor": "9",
    "call-later": "later",
    "event": "set",
    "lock": "unlocked",
    "queue": "45",
    "subprocess": "child",
    "streams": "ping",
    "async-generator": "[0, 1, 2]",
    "sleep-zero": "['handler', 'other', 'handler', 'other', 'handler', 'other']",
    "deep": "200",
}


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("asgi_app:app", "--loop", loop, env={"PYTHONASYNCIODEBUG": "0"}) as server:
        yield server


@pytest.mark.parametrize("read", ["no", "yes"], ids=["first-step", "after-receive"])
@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_of_asyncio_works_in_a_handler(server: Server, feature: str, read: str) -> None:
    response = server.ask(f"/asyncio/{feature}?read={read}", method="POST", body=b"body")
    assert (response.status, response.body.decode()) == (200, FEATURES[feature])


def test_every_feature_works_in_many_requests_at_once(server: Server) -> None:
    clients = {feature: server.connect() for feature in FEATURES}
    for feature, client in clients.items():
        client.send(request(f"/asyncio/{feature}"))
    for feature, client in clients.items():
        assert client.read_response().body.decode() == FEATURES[feature]
        client.close()


def test_the_current_task_is_a_real_task_and_the_same_at_every_step(server: Server) -> None:
    facts = ast.literal_eval(server.ask("/current-task", method="POST", body=b"x").body.decode())
    assert facts == {
        "is_task": True,
        "same": True,
        "child_differs": True,
        "done": False,
        "cancelling": 0,
        "among_all": True,
        "loop": True,
        "named": True,
        "coroutine": True,
    }


def test_concurrent_requests_are_different_tasks_and_none_is_left(server: Server) -> None:
    clients = [server.connect() for _ in range(10)]
    for client in clients:
        client.send(request("/task-number"))
    numbers = {client.read_response().json() for client in clients}
    assert len(numbers) == 10
    for client in clients:
        client.close()
    counts = [server.note("tasks-alive") for _ in range(10)]
    server.ask("/task-number")
    # This request itself, the lifespan, and what the server may run for its own.
    assert server.note("tasks-alive") <= min(counts) + 1
    assert min(counts) <= 4


def test_a_request_starts_from_the_lifespans_context_and_leaks_nothing(server: Server) -> None:
    with server.connect() as client:
        for number in range(5):
            seen = ast.literal_eval(client.ask(f"/context/{number}", method="POST", body=b"x").body.decode())
            assert seen["before"] == {"lifespan": "set in lifespan", "request": "not set"}
            assert set(seen["kept"]) == {f"/context/{number}"}


def test_contexts_of_concurrent_requests_are_apart(server: Server) -> None:
    clients = [server.connect() for _ in range(30)]
    for number, client in enumerate(clients):
        client.send(request(f"/context/{number}", method="POST", body=b"x"))
    for number, client in enumerate(clients):
        seen = ast.literal_eval(client.read_response().body.decode())
        assert seen["before"] == {"lifespan": "set in lifespan", "request": "not set"}
        assert set(seen["kept"]) == {f"/context/{number}"}
        client.close()


def test_a_context_variable_can_be_reset_after_suspending(server: Server) -> None:
    for body in (b"", b"x"):
        assert server.ask("/reset-context", method="POST", body=body).body == b"not set"


def test_asyncios_debug_mode_finds_nothing_to_say(loop: str) -> None:
    with Server("asgi_app:app", "--loop", loop, env={"PYTHONASYNCIODEBUG": "1"}) as server:
        for feature, result in FEATURES.items():
            assert server.ask(f"/asyncio/{feature}").body.decode() == result
        server.stop()
        assert "non-thread-safe" not in server.stderr
        assert "was never" not in server.stderr


def test_warnings_as_errors_find_nothing_to_say(loop: str) -> None:
    with Server("asgi_app:app", "--loop", loop, env={"PYTHONDEVMODE": "1"}) as server:
        for _ in range(3):
            server.ask("/tasks", method="POST", body=b"x")
            server.ask("/context/x", method="POST", body=b"x")
        server.stop()
        assert "Warning" not in server.stderr


@pytest.mark.parametrize("name", ["receive", "send"])
def test_receive_and_send_are_coroutine_functions_to_whoever_asks(server: Server, name: str) -> None:
    shown = server.ask("/callables").json()
    assert shown[name] == {
        "inspect": True,
        "asyncio": True,
        "partial": True,
        "name": name,
        "signature": "()" if name == "receive" else "(message)",
        "awaitable": False,
        "weak": True,
    }
    assert shown["wrong"] == ["TypeError"] * 4
