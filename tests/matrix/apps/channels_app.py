"""The matrix's application in Django with Channels: its router, and a consumer that speaks HTTP."""

import asyncio

from channels.generic.http import AsyncHttpConsumer
from channels.routing import ProtocolTypeRouter, URLRouter
from django.urls import path, re_path
from django_app import app as django_app


class Stream(AsyncHttpConsumer):
    async def handle(self, body):
        await self.send_headers(headers=[(b"Content-Type", b"text/plain")])
        for number in range(5):
            await self.send_body(f"piece {number}\n".encode(), more_body=True)
            await asyncio.sleep(0.001)
        await self.send_body(b"")


app = ProtocolTypeRouter(
    {"http": URLRouter([path("stream", Stream.as_asgi()), re_path("", django_app)])},
)
