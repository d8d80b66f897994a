"""What startup makes, every request finds in its state.

Run it: serve examples/lifespan_state.py

`curl localhost:8000/` answers `request 1` and counts on; shutdown prints how many requests there were. Each
request has a copy of the state, a shallow one: the list in it is the same for all.
"""


async def lifespan(scope, receive, send):
    state = scope["state"]
    assert (await receive())["type"] == "lifespan.startup"
    state["requests"] = []
    await send({"type": "lifespan.startup.complete"})
    assert (await receive())["type"] == "lifespan.shutdown"
    print(f"{len(state['requests'])} requests", flush=True)
    await send({"type": "lifespan.shutdown.complete"})


async def answer(scope, send):
    state = scope["state"]
    state["requests"].append(scope["path"])
    text = f"request {len(state['requests'])}\n"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": text.encode()})


async def app(scope, receive, send):
    match scope["type"]:
        case "lifespan":
            await lifespan(scope, receive, send)
        case "http":
            await answer(scope, send)
        case other:
            raise NotImplementedError(f"{other} is not served here")
