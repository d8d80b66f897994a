"""A FastAPI application end to end, through httpx."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from harness import APPS, Server

from bridgehead.pytest_plugin import MakeClient


@pytest.fixture(scope="module")
def server(loop: str) -> Iterator[Server]:
    with Server("fastapi_app:app", "--loop", loop, allow=["Traceback"]) as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=15, trust_env=False) as client:
        yield client


def test_a_handler_answers_json(client: httpx.Client) -> None:
    response = client.get("/")
    assert response.json() == {"hello": "world"}
    assert response.headers["content-type"] == "application/json"


def test_middleware_adds_its_header(client: httpx.Client) -> None:
    assert client.get("/").headers["x-process"] == "GET"


def test_a_sync_handler_runs_in_a_thread(client: httpx.Client) -> None:
    assert client.get("/sync").json() == {"main": False}


def test_parameters_come_from_path_query_and_headers(client: httpx.Client) -> None:
    response = client.get("/items/7", params={"q": "a b&c"}, headers={"X-Token": "secret"})
    assert response.json() == {"number": 7, "q": "a b&c", "token": "secret"}


def test_a_wrong_parameter_is_a_422(client: httpx.Client) -> None:
    assert client.get("/items/seven").status_code == 422


def test_a_model_is_validated_and_answered(client: httpx.Client) -> None:
    item = {"name": "crane", "price": 9.5, "tags": ["é", "🦀"]}
    response = client.post("/items", json=item)
    assert (response.status_code, response.json()) == (201, item)
    assert client.post("/items", json={"name": "no price"}).status_code == 422


@pytest.mark.parametrize("size", [0, 1, 100_000, 5_000_000])
def test_an_upload_arrives_whole(client: httpx.Client, size: int) -> None:
    content = os.urandom(size)
    response = client.post("/upload", files={"file": ("a.bin", content)}, data={"note": "kept"})
    assert response.json() == {
        "name": "a.bin",
        "size": size,
        "sum": sum(content[:1000]),
        "note": "kept",
    }


def test_an_upload_as_bytes_arrives_whole(client: httpx.Client) -> None:
    assert client.post("/files", files={"file": b"x" * 1000}).json() == {"size": 1000}


def test_dependencies_with_yield_are_opened_and_closed(client: httpx.Client) -> None:
    assert client.get("/dependencies").json() == ["async session", "sync session"]
    events = [client.get("/event").json() for _ in range(4)]
    assert sorted(events[:2]) == ["async open", "sync open"]
    assert sorted(events[2:]) == ["async closed", "sync closed"]


def test_a_dependency_is_closed_when_the_handler_fails(client: httpx.Client) -> None:
    response = client.get("/dependency-that-fails")
    assert (response.status_code, response.json()) == (409, {"detail": "async session"})
    assert [client.get("/event").json() for _ in range(2)] == ["async open", "async closed"]


def test_server_sent_events_come_one_by_one(client: httpx.Client) -> None:
    with client.stream("GET", "/stream", params={"count": 50}) as response:
        lines = [line for line in response.iter_lines() if line]
    assert lines == [f"data: {number}" for number in range(50)]


@pytest.mark.parametrize("target", ["/stream?count=50", "/sync-stream", "/"])
def test_a_half_closed_client_gets_its_whole_answer(
    server: Server, half_closing_client: MakeClient, target: str
) -> None:
    leaving = half_closing_client(server, target)
    assert leaving.answer().body == server.ask(target).body
    assert leaving.wait_for_end() == b""


def test_a_sync_iterator_is_streamed(client: httpx.Client) -> None:
    assert client.get("/sync-stream").content == b"one,two,three"


def test_a_file_is_sent_whole(client: httpx.Client) -> None:
    assert client.get("/file").content == (APPS / "fastapi_app.py").read_bytes()


def test_background_tasks_run_after_the_answer(client: httpx.Client) -> None:
    assert client.get("/background").json() == "answered"
    assert client.get("/event").json() == "background done"


def test_context_variables_stay_in_their_request(client: httpx.Client) -> None:
    for name in ("ann", "ben", "cid"):
        assert client.get(f"/user/{name}").json() == {"before": "nobody", "after": name}


def test_the_lifespans_state_is_on_the_request(client: httpx.Client) -> None:
    assert client.get("/state").json() == "connected"


def test_a_timeout_works_in_a_handler(client: httpx.Client) -> None:
    assert client.get("/timeout").text == "timed out"


def test_an_exception_is_a_500_and_the_next_request_is_served(client: httpx.Client) -> None:
    assert client.get("/fail").status_code == 500
    assert client.get("/").status_code == 200


def test_the_schema_and_the_docs_are_served(client: httpx.Client) -> None:
    assert client.get("/openapi.json").json()["info"]["title"] == "FastAPI"
    assert "swagger" in client.get("/docs").text.lower()


def test_many_slow_requests_run_at_once(server: Server) -> None:
    def ask(_: int) -> int:
        return httpx.get(
            f"{server.url}/slow", params={"seconds": 0.2}, timeout=15, trust_env=False
        ).status_code

    with ThreadPoolExecutor(30) as pool:
        assert list(pool.map(ask, range(90))) == [200] * 90
