"""A FastAPI application: a path parameter, a model, a dependency, an upload.

Run it: serve examples/fastapi_app.py

Needs `pip install fastapi python-multipart`. `curl localhost:8000/items/3` answers JSON, `/docs` shows the
rest. `curl -F file=@FILE localhost:8000/files` answers the name and the size of an upload.
"""

from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException, Request, UploadFile
from pydantic import BaseModel


class Item(BaseModel):
    name: str
    price: float


@asynccontextmanager
async def lifespan(_: FastAPI):
    yield {"items": {3: Item(name="teapot", price=12.5)}}


app = FastAPI(title="A shop", lifespan=lifespan)


def items_of(request: Request) -> dict[int, Item]:
    """The shop's items, which the lifespan has put into the state."""
    return request.state.items


Items = Annotated[dict[int, Item], Depends(items_of)]


@app.get("/items/{number}")
async def read_item(number: int, items: Items) -> Item:
    if number not in items:
        raise HTTPException(404, "no such item")
    return items[number]


@app.put("/items/{number}")
async def write_item(number: int, item: Item, items: Items) -> Item:
    items[number] = item
    return item


@app.post("/files")
async def read_file(file: UploadFile) -> dict[str, str | int]:
    return {"name": file.filename or "", "size": len(await file.read())}
