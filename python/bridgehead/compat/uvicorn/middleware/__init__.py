"""`uvicorn.middleware`: applications around applications, for those who add them by themselves."""
