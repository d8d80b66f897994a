"""`manage.py runserver`, with ASGI_APPLICATION served by Bridgehead: Channels and async views.

Not the reloading, the checks and the words on the terminal, which are Django's.

Invariant: every option of Django's own command means what it does there, those for static files too.
"""

import socket
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from bridgehead.server import Server
from bridgehead.server_config import Config

if apps.is_installed("django.contrib.staticfiles"):
    from django.contrib.staticfiles.management.commands.runserver import Command as RunserverCommand
else:
    from django.core.management.commands.runserver import Command as RunserverCommand


class DevelopmentServer:
    """What Django makes, binds, hands an application, and runs."""

    def __init__(self, address: tuple[str, int], _: type, *, ipv6: bool = False) -> None:
        family = socket.AF_INET6 if ipv6 else socket.AF_INET
        self._socket = socket.create_server(address, family=family, backlog=128)
        self.server_port = self._socket.getsockname()[1]
        self._application: Any = None

    def set_app(self, application: Any) -> None:
        """What is to be served."""
        self._application = application

    def serve_forever(self) -> None:
        """Until the process is told to stop."""
        Server(Config(self._application)).run(sockets=[self._socket])


class Command(RunserverCommand):
    """The command."""

    help = "Serves ASGI_APPLICATION by Bridgehead, for development; also static files."
    server_cls = DevelopmentServer

    def inner_run(self, *args: Any, **options: Any) -> None:
        """Without Django's threads: the loop needs none."""
        super().inner_run(*args, **{**options, "use_threading": False})

    def get_handler(self, *args: Any, **options: Any) -> Any:  # noqa: ARG002 - Django hands them over
        """The application, and static files in front of it where Django's own command has them."""
        path = getattr(settings, "ASGI_APPLICATION", None)
        application = get_asgi_application() if path is None else _named(path)
        shown = settings.DEBUG or options.get("insecure_serving", False)
        if options.get("use_static_handler", False) and shown:
            from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler

            return ASGIStaticFilesHandler(application)
        return application


def _named(path: str) -> Any:
    """The application that ASGI_APPLICATION names, or Django's own kind of complaint."""
    try:
        return import_string(path)
    except ImportError as error:
        raise ImproperlyConfigured(
            f"ASGI_APPLICATION {path!r} could not be loaded ({error}): name it as package.module.attribute"
        ) from error
