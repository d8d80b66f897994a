"""The command `uvicorn` as an object of click's, for programs that ask it, add to it or call it in their own.

Not the words: those are read as `serve` reads them (`command_line.py`). Only where click is installed:
nothing else of ours needs it.

Invariant: what others add to `params` is read by click, and everything else as by `serve`.
"""

from collections.abc import Callable, Iterator
from typing import Any

import click

from bridgehead.config import OPTIONS
from bridgehead.errors import EXIT_START_FAILED, StartError
from bridgehead.options import Option, Shape
from bridgehead.uvicorn_parameters import OF_RUN, UVICORNS

# What was asked for, on its way through click: from the words to the callback.
_ASKED = "bridgehead.asked"


class Refused(click.ClickException):
    """A start that cannot be, in our words."""

    exit_code = EXIT_START_FAILED

    def __init__(self, problem: StartError) -> None:
        super().__init__(str(problem))
        self._problem = problem

    def show(self, file: Any = None) -> None:
        """Say it as `serve` does."""
        click.echo(self._problem.render(), file=file, err=file is None, nl=False)


class Command(click.Command):
    """Serves, by `serve`; a callback that replaces `run` is called with the options instead."""

    def __init__(
        self, read: Callable[[list[str]], Any], serve: Callable[[Any], None], run: Callable[..., None]
    ) -> None:
        self._read, self._serve, self._run = read, serve, run
        self._ours = tuple(_parameters())
        super().__init__(
            "uvicorn",
            callback=run,
            params=list(self._ours),
            help="Serve an ASGI application by Bridgehead.",
            # For what others add: ours are read from the environment by `read`.
            context_settings={"auto_envvar_prefix": "UVICORN"},
            add_help_option=True,
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Hand click what is not ours, and read the rest."""
        ctx.ignore_unknown_options = ctx.allow_extra_args = True
        added = [each for each in self.get_params(ctx) if each not in self._ours]
        words = click.Command(self.name, params=added, add_help_option=False).parse_args(ctx, args)
        ctx.args = []
        if ctx.resilient_parsing:  # for completion: nothing is to be served
            return []
        try:
            asked = self._read(words)
        except StartError as problem:
            raise Refused(problem) from None
        ctx.meta[_ASKED] = asked
        ctx.params |= {name: getattr(asked, name) for name in OF_RUN.parameters}
        return []

    def invoke(self, ctx: click.Context) -> Any:
        """Serve, unless the callback is another's."""
        if self.callback is self._run:
            return self._serve(ctx.meta[_ASKED])
        return super().invoke(ctx)


def _parameters() -> Iterator[click.Parameter]:
    """Every option, uvicorn's first and in its order, to be looked at and listed."""
    options = {option.name: option for option in OPTIONS}
    for name in dict.fromkeys([*UVICORNS, *options]):
        if name in OF_RUN.parameters and name in options:
            yield _parameter(options[name])


def _parameter(option: Option) -> click.Parameter:
    # Whoever calls this command in another's gets what `uvicorn.run` has where nothing is given.
    default = OF_RUN.parameters[option.name].default
    match option.shape:
        case Shape.TARGET:
            return click.Argument([option.name], required=False, type=click.UNPROCESSED)
        case Shape.SWITCH | Shape.FLAG:
            words, more = [option.flags, option.name], dict[str, Any](is_flag=True)
        case Shape.LIST:
            words, more = [option.flag, option.name], dict[str, Any](multiple=True)
        case Shape.VALUE:
            words, more = [option.flag, option.name], dict[str, Any](type=click.UNPROCESSED)
    more |= {"help": option.help, "metavar": option.metavar or None, "allow_from_autoenv": False}
    return click.Option(words, default=default, **more)
