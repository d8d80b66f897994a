"""`uvicorn.loops`: factories of event loops, by the names of their modules."""
