"""A long poll that notices when its client leaves.

Run it: serve examples/disconnect.py

`curl localhost:8000/wait` waits for news; stop it with Ctrl+C and the server prints `a client left`.
`curl -d hello localhost:8000/news` answers all who wait, and says how many they were.
"""

import asyncio

waiting: set[asyncio.Future] = set()


async def answer(send, text):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": text.encode()})


async def until_gone(receive):
    """Return once the client has left; what it sends is passed over."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def wait(receive, send):
    news = asyncio.get_running_loop().create_future()
    gone = asyncio.create_task(until_gone(receive))
    waiting.add(news)
    try:
        await asyncio.wait({news, gone}, return_when=asyncio.FIRST_COMPLETED)
        if news.done():
            await answer(send, f"{news.result()}\n")
        else:
            print("a client left", flush=True)
    finally:
        waiting.discard(news)
        gone.cancel()


async def tell(receive, send):
    text = (await receive()).get("body", b"").decode(errors="replace")
    told = [news for news in waiting if not news.done()]
    for news in told:
        news.set_result(text)
    await answer(send, f"told {len(told)}\n")


async def app(scope, receive, send):
    if scope["type"] != "http":
        raise NotImplementedError(f"{scope['type']} is not served here")
    await (tell if scope["path"] == "/news" else wait)(receive, send)
