"""`litestar run` on Bridgehead: `Litestar([...], plugins=[BridgeheadPlugin()])`.

Not the options of the command, which are Litestar's.

Invariant: uvicorn need not be installed; where it is, it is not what serves.
"""

from typing import TYPE_CHECKING

from litestar.plugins import CLIPlugin

from bridgehead import compat

if TYPE_CHECKING:
    from click import Group


class BridgeheadPlugin(CLIPlugin):
    """Puts Bridgehead in uvicorn's place, for the commands of Litestar and the processes that they start."""

    def on_cli_init(self, cli: "Group") -> None:  # noqa: ARG002 - Litestar hands it over
        """Called before a command runs."""
        from litestar.cli.commands import core

        compat.install()
        core.UVICORN_INSTALLED = True
