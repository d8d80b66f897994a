"""The applications that are measured, with a framework.

Not examples: each does one thing, so that a difference between servers shows.
"""

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route


async def answer(request):
    """A small JSON."""
    return JSONResponse({"message": "hello", "path": request.url.path})


json_app = Starlette(routes=[Route("/json", answer)])


class Item(BaseModel):
    """What is sent."""

    name: str
    price: float
    tags: list[str] = []


api = FastAPI()


@api.post("/items/{number}")
async def put(number: int, item: Item, verbose: bool = False):
    """Path, query and a body that pydantic checks."""
    return {"number": number, "verbose": verbose, "name": item.name, "price": item.price}
