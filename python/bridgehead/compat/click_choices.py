"""`uvicorn.main`'s objects of click's, for commands of others that have uvicorn's options as well.

Not the command itself (`click_command.py`). Only where click is installed.

Invariant: what may be chosen is what the options of those names take.
"""

import click

from bridgehead.command_line import version_line
from bridgehead.compat.uvicorn.config import INTERFACES, LIFESPAN, LOG_LEVELS

LEVEL_CHOICES = click.Choice([*LOG_LEVELS])
LIFESPAN_CHOICES = click.Choice([*LIFESPAN])
INTERFACE_CHOICES = click.Choice([*INTERFACES])


def print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: ARG001 - click's
    """For an option `--version`: who serves, and the end."""
    if value and not ctx.resilient_parsing:
        click.echo(version_line())
        ctx.exit()
