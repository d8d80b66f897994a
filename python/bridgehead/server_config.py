"""`bridgehead.Config`: the options of a server in code, and what becomes of them when they are loaded.

Not the options: `config.py` has each once.

Invariant: `loaded_app` is there when `loaded` is true, and has been adapted to ASGI 3.
"""

import asyncio
import contextvars
import os
import socket
from collections.abc import Awaitable, Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from bridgehead import config as options
from bridgehead import log
from bridgehead.asgi import Application
from bridgehead.cores import workers
from bridgehead.lifespan import Deadlines, Lifespan
from bridgehead.sockets import bind
from bridgehead.uvicorn_arguments import arguments, refuse_context_factory
from bridgehead.uvicorn_parameters import OF_CONFIG, of_a_method

if TYPE_CHECKING:
    from bridgehead.certificates import Credentials, Keeper
    from bridgehead.ssl_context import Context
    from bridgehead.static_files import StaticFiles

_OF_TLS = (*(each.name for each in options.OPTIONS if each.group == "TLS"), "http2")
_FILES = "name files by ssl_certfile, ssl_keyfile and ssl_ca_certs, or leave them out for no TLS"


class Config(options.Config):
    """The options of a `Server`, by uvicorn's names: `Config(app, port=0, log_level="warning")`.

    `app` is an application, or the words that name one. Every option can be assigned until the server starts.
    Without their names they come in uvicorn's order.
    """

    callback_notify: Callable[..., Awaitable[None]] | None  # told that the server lives,
    timeout_notify: float  # so many seconds after it was told before

    loaded: bool
    loaded_app: Application
    loaded_name: str
    credentials: "Credentials | None"  # with what handshakes are made, once it is loaded
    is_handed_over: bool  # whether they are being made
    static_files: "StaticFiles | None"  # what is answered without the application, once it is loaded

    if not TYPE_CHECKING:  # who checks types is told of the options' own, by keyword

        def __init__(self, *positional: Any, **named: Any) -> None:
            given = arguments(positional, named)
            super().__init__(**given.options)
            self.callback_notify = given.callback_notify
            self.timeout_notify = given.timeout_notify

    def __post_init__(self) -> None:
        super().__post_init__()
        self.loaded = self.is_handed_over = False
        self._lifespan_class: Any = None
        self._ssl: Context | None = None
        self._asked_of_tls: tuple[object, ...] | None = None
        self.configure_logging()

    @classmethod
    def of(cls, settings: options.Config) -> Self:
        """The same options."""
        return cls(**{each.name: getattr(settings, each.name) for each in fields(settings)})

    def configure_logging(self) -> None:
        """Set up the server's own loggers; done when the configuration is made."""
        log.configure(self)

    def be_loaded(self) -> None:
        """Call `load`, unless that has been done: what a subclass adds to it is to happen once."""
        if not self.loaded:
            self.load()

    def load(self) -> None:
        """Find the application, unless that has been done. `StartError` says why it cannot be found."""
        if self.loaded:
            return
        # Imported when something is loaded: who only configures needs none of it.
        from bridgehead import interpreter, static_files
        from bridgehead.interface import adapt
        from bridgehead.load_app import load

        if self.env_file is not None:
            from bridgehead.env_file import read_env_file

            variables = read_env_file(self.env_file, os.environ)
            os.environ.update({name: each.value for name, each in variables.items()})
        self.secure()
        self.static_files = static_files.wanted(self)
        found = load(self.app, factory=self.factory, app_dir=self.app_dir)
        interpreter.check()
        self.loaded_name = found.name
        application, self.interface = adapt(found.application, self.interface, found.name)
        if log.logger().isEnabledFor(log.TRACE):
            from bridgehead.messages import traced

            application = traced(application)
        self.loaded_app = self._as_loaded(application)  # once: whoever watches it may wrap what is assigned
        self.loaded = True

    def _as_loaded(self, application: Application) -> Application:
        return application

    @property
    def served_app(self) -> Application:
        """What is called for each request: `loaded_app`, as it is by now."""
        return self.loaded_app

    def secure(self) -> None:
        """Read what handshakes are made with, as the options ask by now; once for the same options."""
        asked = tuple(getattr(self, name) for name in _OF_TLS)
        if asked != self._asked_of_tls:
            self.credentials = self._credentials()
            self._asked_of_tls = asked

    def keeper(self) -> "Keeper | None":
        """Whoever has the certificates read again, on the loop that runs; nobody in the clear."""
        if self.credentials is None:
            return None
        from bridgehead.certificates import Keeper

        return Keeper(self.credentials)

    def _credentials(self) -> "Credentials | None":
        if not self.is_ssl:
            self.refuse_without_tls()
            return None
        from bridgehead.certificates import credentials

        return credentials(self)

    @property
    def asgi_version(self) -> str:
        """What ASGI calls the version of the application's interface."""
        return "2.0" if self.interface == "asgi2" else "3.0"

    @property
    def should_reload(self) -> bool:
        """Whether `bridgehead.run` starts the application again when its files change."""
        return isinstance(self.app, str) and self.reload

    @property
    def use_subprocess(self) -> bool:
        """Whether `bridgehead.run` serves in other processes."""
        return (
            self.reload
            or workers(self) > 1
            or any(each is not None for each in (self.user, self.group, self.control_socket))
        )

    @property
    def encoded_headers(self) -> list[tuple[bytes, bytes]]:
        """What each answer has, unless the application says it itself."""
        named = any(name == b"server" for name, _ in self.headers)
        server = [(b"server", b"bridgehead")] if self.server_header and not named else []
        return [*server, *self.headers]

    @property
    def lifespan_class(self) -> Any:
        """Called with the configuration, gives what starts and ends the application; may be assigned."""
        return self._lifespan_class or self._own_lifespan()

    @lifespan_class.setter
    def lifespan_class(self, chosen: type[Lifespan]) -> None:
        self._lifespan_class = chosen

    def _own_lifespan(self) -> type[Lifespan]:
        return ServerLifespan

    @property
    def ssl(self) -> "Context | None":
        """What stands for the context of Python's, where TLS is on."""
        from bridgehead.ssl_context import Context

        if self.is_ssl and self._ssl is None:
            self._ssl = Context(self)
        return self._ssl if self.is_ssl else None

    @ssl.setter
    def ssl(self, chosen: object) -> None:
        if chosen is not self.ssl:
            from bridgehead.ssl_context import refused

            raise refused(f"config.ssl = {chosen!r}", _FILES)

    @property
    def ssl_context_factory(self) -> None:
        """None: what another would make could not be used."""
        return None

    @ssl_context_factory.setter
    def ssl_context_factory(self, chosen: object) -> None:
        refuse_context_factory(chosen)

    @property
    def reload_dirs_excludes(self) -> list[Path]:
        """The directories among the patterns of what is not watched."""
        return [Path(each) for each in self.reload_excludes if Path(each).is_dir()]

    def load_app(self) -> Application:
        """Find the application; uvicorn's `load` in two steps."""
        self.be_loaded()
        return self.loaded_app

    def setup_event_loop(self) -> None:
        """Gone in uvicorn since 0.36."""
        raise AttributeError("`setup_event_loop` was replaced by `get_loop_factory` in uvicorn 0.36.0")

    def get_loop_factory(self) -> Callable[[], asyncio.AbstractEventLoop]:
        """For `asyncio.run(server.serve(), loop_factory=…)`: makes the loop that `loop` names."""
        from bridgehead.loops import plain_loop

        wanted, folder = self.loop, self.app_dir
        return lambda: plain_loop(wanted, folder)

    def bind_socket(self) -> socket.socket:
        """A socket that listens where the configuration says, to be given to `Server.run(sockets=[…])`."""
        bound = bind(self.addresses(), backlog=self.backlog)
        # A name may stand for an address of each family. There is one socket to give: uvicorn's is of IPv4.
        chosen = next((each for each in bound if each.socket.family != socket.AF_INET6), bound[0])
        for each in bound:
            if each is not chosen:
                each.close()
        log.serving([chosen.label], self.calls_itself)
        chosen.socket.set_inheritable(True)
        return chosen.socket


class ServerLifespan(Lifespan):
    """The lifespan of a configuration's application."""

    def __init__(self, config: Config) -> None:
        config.be_loaded()
        deadlines = Deadlines(
            startup=config.timeout_lifespan_startup, shutdown=config.timeout_lifespan_shutdown
        )
        super().__init__(config.served_app, config.lifespan, deadlines, contextvars.copy_context())


Config.__init__.__signature__ = of_a_method(OF_CONFIG)  # type: ignore[attr-defined]
