"""What the image serves; put your own application here."""

from fastapi import FastAPI

app = FastAPI()


@app.get("/")
async def hello() -> dict[str, str]:
    """The one answer."""
    return {"hello": "container"}
