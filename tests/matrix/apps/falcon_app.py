"""The matrix's application in Falcon."""

import asyncio
import os
from http.cookies import SimpleCookie

import falcon
import falcon.asgi
from falcon.asgi import SSEvent

done = []


class Hello:
    async def on_get(self, request, response):
        response.content_type, response.text = falcon.MEDIA_TEXT, "hello"


class Query:
    async def on_get(self, request, response):
        response.media = request.params


class Thread:
    async def on_get(self, request, response):
        response.text = await asyncio.get_running_loop().run_in_executor(None, lambda: "from a thread")


class Form:
    async def on_post(self, request, response):
        response.media = await request.get_media()


class Upload:
    async def on_post(self, request, response):
        async for part in await request.get_media():
            response.media = {"name": part.filename, "size": len(await part.stream.read())}


class Echo:
    async def on_post(self, request, response):
        response.content_type = falcon.MEDIA_MSGPACK
        response.data = b"".join([piece async for piece in request.stream])


class Stream:
    async def on_get(self, request, response):
        async def pieces():
            for number in range(5):
                yield f"piece {number}\n".encode()
                await asyncio.sleep(0.001)

        response.content_type, response.stream = falcon.MEDIA_TEXT, pieces()


class Events:
    async def on_get(self, request, response):
        async def all_events():
            for number in range(3):
                yield SSEvent(text=str(number))

        response.sse = all_events()


class Session:
    async def on_get(self, request, response):
        sent = SimpleCookie(request.get_header("cookie") or "")
        count = int(sent["session"].value) + 1 if "session" in sent else 1
        response.set_cookie("session", str(count))
        response.text = str(count)


class Background:
    async def on_get(self, request, response):
        response.text = str(len(done))

    async def on_post(self, request, response):
        response.status, response.text = falcon.HTTP_202, "later"
        response.schedule_sync(lambda: done.append(1))


class File:
    async def on_get(self, request, response):
        response.content_type = falcon.MEDIA_TEXT
        response.content_length = os.path.getsize(__file__)
        response.stream = read(open(__file__, "rb"))

    on_head = on_get


async def read(file):
    with file:
        while piece := await asyncio.to_thread(file.read, 1000):
            yield piece


class Item:
    async def on_get(self, request, response, name):
        response.media = {"name": name, "path": request.path}


class Redirect:
    async def on_get(self, request, response):
        raise falcon.HTTPFound("/elsewhere")


class Nothing:
    async def on_get(self, request, response):
        response.status = falcon.HTTP_204


class Boom:
    async def on_get(self, request, response):
        raise RuntimeError("on purpose")


app = falcon.asgi.App()
app.req_options.auto_parse_form_urlencoded = False
for route, resource in {
    "/": Hello,
    "/query": Query,
    "/thread": Thread,
    "/form": Form,
    "/upload": Upload,
    "/echo": Echo,
    "/stream": Stream,
    "/events": Events,
    "/session": Session,
    "/background": Background,
    "/file": File,
    "/item/{name}": Item,
    "/redirect": Redirect,
    "/nothing": Nothing,
    "/boom": Boom,
}.items():
    app.add_route(route, resource())
