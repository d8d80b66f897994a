"""The command `serve`: words in, exit code out.

Not the meaning of an option (`config.py`) and not the server (`worker.py`); this file puts them in order.

Invariant: whatever stops a start ends with exit code 3 and the next step on stderr; `--help` and `--version`
load nothing that serves.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, NoReturn

from bridgehead.config import OPTIONS, Config
from bridgehead.errors import EXIT_START_FAILED, Interrupted, StartError, did_you_mean
from bridgehead.options import Option, Shape
from bridgehead.sources import (
    OUR_PREFIX,
    UVICORN_PREFIX,
    Given,
    environment,
    refuse_plaintext,
    resolve,
    strays,
)

EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells report it

_DESCRIPTION = "Serve an ASGI application."
_EPILOG = f"""\
Every option can be set in the environment: --log-level is {OUR_PREFIX}LOG_LEVEL
(uvicorn's names work too: {UVICORN_PREFIX}LOG_LEVEL). Flags outrank the environment.

examples:
  serve main:app
  serve src/main.py --port 0
  serve 'shop.web:create_app()' --bind :8000 --bind unix:/run/shop.sock
"""


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Serve until told to stop, and end the process."""
    _open_missing_descriptors()
    try:
        code = _serve(sys.argv[1:] if argv is None else argv)
    except StartError as problem:
        sys.stderr.write(problem.render())
        code = EXIT_START_FAILED
    except (KeyboardInterrupt, Interrupted):
        code = EXIT_INTERRUPTED
    sys.exit(code)


def read_config(argv: Sequence[str], environ: Mapping[str, str]) -> Config:
    """The configuration that these words and this environment ask for."""
    refuse_plaintext(environ)
    layers = (_flags(argv), environment(environ, OUR_PREFIX), environment(environ, UVICORN_PREFIX))
    return resolve(layers)


def _serve(argv: Sequence[str]) -> int:
    config = read_config(argv, os.environ)
    if not config.app:
        raise StartError("no application was named", "try `serve main:app` or `serve path/to/main.py`")

    from bridgehead import log

    log.configure(level=config.log_level, use_colors=config.use_colors)
    for sentence in strays(os.environ):
        log.logger().warning("%s", sentence)

    from bridgehead.worker import run

    return run(config)


def _open_missing_descriptors() -> None:
    """After `2>&-` a socket would get the number that is free, and whoever prints would write into it."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it gets the lowest number: this one
            if getattr(sys, name) is None:
                setattr(sys, name, os.fdopen(number, mode, closefd=False))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise StartError(message.removeprefix("argument "), "see `serve --help`")


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=34, width=100)


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        sys.stdout.write(_version_line() + "\n")
        parser.exit()


def _flags(argv: Sequence[str]) -> dict[str, Given]:
    """What was written on the command line, unread."""
    parsed, unknown = _parser().parse_known_args(argv)
    if unknown:
        raise _unknown(next((word for word in unknown if word.startswith("-")), unknown[0]))
    written = vars(parsed)
    return {
        option.name: Given(value=written[option.name], source=option.flags)
        for option in OPTIONS
        if option.name in written
    }


def _unknown(word: str) -> StartError:
    if not word.startswith("-"):
        return StartError(f"unexpected argument {word!r}", "one TARGET is enough; options begin with --")
    flag = word.partition("=")[0]
    known = [*_parser()._option_string_actions]
    hint = did_you_mean(flag, known, otherwise="see `serve --help` for the options of this version")
    return StartError(f"there is no option {flag!r}", hint)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="serve",
        usage="serve TARGET [options]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=_HelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    for group, members in groupby(OPTIONS, key=lambda option: option.group):
        section = parser.add_argument_group(group)
        for option in members:
            _add(section, option)
    others = parser.add_argument_group("Others")
    others.add_argument("-h", "--help", action="help", help="show this and exit")
    others.add_argument(
        "--version", action=_Version, nargs=0, default=argparse.SUPPRESS, help="show the version and exit"
    )
    return parser


def _add(section: argparse._ArgumentGroup, option: Option) -> None:
    shown = f" [{option.shown_default}]" if option.shape is not Shape.TARGET else ""
    words = (option.help + shown).replace("%", "%%")
    own: dict[Shape, dict[str, Any]] = {
        Shape.TARGET: {"nargs": "?", "metavar": option.metavar},
        Shape.VALUE: {"dest": option.name, "metavar": option.metavar},
        Shape.LIST: {"dest": option.name, "metavar": option.metavar, "action": "append"},
        Shape.SWITCH: {"dest": option.name, "action": argparse.BooleanOptionalAction},
        Shape.FLAG: {"dest": option.name, "action": "store_true"},
    }
    name = option.name if option.shape is Shape.TARGET else option.flag
    section.add_argument(name, default=argparse.SUPPRESS, help=words, **own[option.shape])


def _version_line() -> str:
    import platform

    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"Running bridgehead {_installed_version()} with {python} on {platform.system()}"


def _installed_version() -> str:
    """What the folder of our metadata is called: importing importlib.metadata to ask costs 30 ms."""
    for folder in sys.path:
        with suppress(OSError):
            for name in os.listdir(folder or os.curdir):
                if name.startswith("bridgehead-") and name.endswith(".dist-info"):
                    return name.removeprefix("bridgehead-").removesuffix(".dist-info")
    return "(not installed)"
