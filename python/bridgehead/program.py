"""`bridgehead.run()`: what a program calls that wants nothing but to serve.

Not the server (`server.py`), which a program may also make and start itself.

Invariant: what it takes is what a `Config` takes, and each option is said once, there.
"""

from contextlib import suppress
from typing import Any

from bridgehead.server import Server
from bridgehead.server_config import Config
from bridgehead.signature import with_the_options
from bridgehead.uvicorn_arguments import of_run


@with_the_options(Config)
def run(*app: Any, **options: Any) -> None:
    """Serve an application until told to stop: `run(app, port=8000)`, `run("main:app")`.

    The process ends by the signal that ended the server; Ctrl+C returns, and so does each with `workers` or
    `reload`. A failing start exits with code 3.
    """
    with suppress(KeyboardInterrupt):
        Server(Config(**of_run(app, options))).begin()
