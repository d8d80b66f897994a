"""The route that a framework has found, as it is told of slow requests and in spans."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from bridgehead.route import route_of

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse
    from starlette.routing import Mount, Route
else:
    Starlette = pytest.importorskip("starlette.applications").Starlette
    PlainTextResponse = pytest.importorskip("starlette.responses").PlainTextResponse
    Mount = pytest.importorskip("starlette.routing").Mount
    Route = pytest.importorskip("starlette.routing").Route


async def answer(_: Request) -> PlainTextResponse:
    return PlainTextResponse("")


INNER = Starlette(routes=[Route("/", answer), Route("/items/{item}", answer)])
APP = Starlette(
    routes=[
        Route("/items/{item}", answer),
        Mount("/shop", INNER),
        Mount("/outer", routes=[Mount("/shop", INNER)]),
        Mount("/of/{customer}", INNER),
        Mount("/files", PlainTextResponse("")),
    ]
)


@pytest.mark.parametrize("root", ["", "/behind"])
@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/items/1", "/items/{item}"),
        ("/shop/items/1", "/shop/items/{item}"),
        ("/shop/", "/shop/"),
        ("/outer/shop/items/1", "/outer/shop/items/{item}"),
        ("/of/somebody/items/1", "/items/{item}"),
        ("/files/a/b", "/files/{path}"),
    ],
)
def test_a_route_of_a_mounted_application_has_the_path_of_its_mount(path: str, route: str, root: str) -> None:
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": root + path,
        "root_path": root,
        "headers": [],
        "query_string": b"",
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    async def send(_: Any) -> None:
        pass

    asyncio.run(APP(scope, receive, send))
    assert route_of(scope) == route


@pytest.mark.parametrize(
    "more",
    [{"app_root_path": None}, {"root_path": b"/a", "app_root_path": ""}, {"path_params": None}, {}],
)
def test_whatever_an_application_has_put_there_nothing_is_raised(more: dict[str, Any]) -> None:
    assert route_of({"root_path": "", "path_template": "/a", **more}) == "/a"
