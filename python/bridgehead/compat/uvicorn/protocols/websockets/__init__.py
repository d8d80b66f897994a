"""`uvicorn.protocols.websockets`: names to import."""
