"""`uvicorn.protocols.http`: names to import."""
