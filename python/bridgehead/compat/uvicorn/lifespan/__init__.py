"""`uvicorn.lifespan`: `on` and `off`."""
