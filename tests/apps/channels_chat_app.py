"""The chat of Django Channels' tutorial, waiting and in threads: `serve channels_chat_app:app`."""

from __future__ import annotations

import json
from typing import Any

import django
from asgiref.sync import async_to_sync
from django.conf import settings

settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    CHANNEL_LAYERS={"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}},
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "channels",
    ],
    SECRET_KEY="nothing is secret here",
    SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
)
django.setup()

# What follows looks at the settings when it is imported.
from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.generic.websocket import AsyncWebsocketConsumer, WebsocketConsumer  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402
from django.core.asgi import get_asgi_application  # noqa: E402
from django.urls import path  # noqa: E402

ROOM = "chat_lobby"


class Chat(AsyncWebsocketConsumer):  # type: ignore[misc]
    """The tutorial's third part."""

    async def connect(self) -> None:
        await self.channel_layer.group_add(ROOM, self.channel_name)
        await self.accept()

    async def disconnect(self, close_code: int) -> None:
        await self.channel_layer.group_discard(ROOM, self.channel_name)
        print(f"app: left by {close_code}", flush=True)

    async def receive(self, text_data: str) -> None:
        message = {"type": "chat.message", "message": json.loads(text_data)["message"]}
        await self.channel_layer.group_send(ROOM, message)

    async def chat_message(self, event: dict[str, Any]) -> None:
        name = str(self.scope["user"]) or "nobody"
        await self.send(text_data=json.dumps({"message": event["message"], "to": name}))


class ChatInThreads(WebsocketConsumer):  # type: ignore[misc]
    """Its second part."""

    def connect(self) -> None:
        async_to_sync(self.channel_layer.group_add)(ROOM, self.channel_name)
        self.accept()

    def disconnect(self, close_code: int) -> None:
        async_to_sync(self.channel_layer.group_discard)(ROOM, self.channel_name)
        print(f"app: a thread's left by {close_code}", flush=True)

    def receive(self, text_data: str) -> None:
        message = {"type": "chat.message", "message": json.loads(text_data)["message"]}
        async_to_sync(self.channel_layer.group_send)(ROOM, message)

    def chat_message(self, event: dict[str, Any]) -> None:
        self.send(text_data=json.dumps({"message": event["message"], "to": "a thread"}))


routes = [path("ws/chat/", Chat.as_asgi()), path("ws/threads/", ChatInThreads.as_asgi())]
app = ProtocolTypeRouter(
    {
        "http": get_asgi_application(),
        "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(routes))),
    }
)
