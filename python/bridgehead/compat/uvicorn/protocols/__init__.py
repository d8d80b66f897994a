"""`uvicorn.protocols`: names that programs import; HTTP and WebSockets themselves are spoken in Rust."""
