"""What programs hold for `config.ssl`: something that can be told to load a certificate again.

Not a context of Python's: handshakes are made by rustls, with the files that the configuration names.

Invariant: what it is told either holds for new connections, or is refused.
"""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bridgehead.server_config import Config


class Context:
    """As much of an `ssl.SSLContext` as those who renew certificates call."""

    def __init__(self, config: "Config") -> None:
        self._config = config

    def load_cert_chain(self, certfile: str, keyfile: str | None = None, password: object = None) -> None:
        """The files of the configuration are read again once they change; others are refused."""
        named = {os.path.abspath(each) for each in (*self._config.certificate_files, *self._config.key_files)}
        for file in (certfile, keyfile):
            if file is not None and os.path.abspath(file) not in named:
                raise ValueError(
                    f"{file} is not among the files this server was started with: {sorted(named)}"
                )
        if password is not None and not self._config.ssl_keyfile_password:
            raise ValueError("the server was started without ssl_keyfile_password")
