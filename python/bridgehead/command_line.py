"""The words after `serve`: their grammar and their help.

Not the meaning of an option (`config.py`), and nothing is read from anywhere else (`settings.py`).

Invariant: what was written is handed on unread, with the flag it was written after.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NoReturn

from bridgehead.aliases import NEAR_NAMES, written_out
from bridgehead.argument_parser import Parser
from bridgehead.config import OPTIONS
from bridgehead.errors import StartError
from bridgehead.sources import OUR_PREFIX, UVICORN_PREFIX, Given, refuse_uvicorns
from bridgehead.successors import SUCCESSORS

_DESCRIPTION = "Serve an ASGI application."
_EPILOG = f"""\
Every option can be set in the environment: --log-level is {OUR_PREFIX}LOG_LEVEL
(uvicorn's names work too: {UVICORN_PREFIX}LOG_LEVEL), and under [tool.bridgehead] in
pyproject.toml: log-level. Flags outrank the environment, which outranks the file.

examples:
  serve
  serve main:app
  serve src/main.py --port 0
  serve 'shop.web:create_app()' --bind :8000 --bind unix:/run/shop.sock
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What may be written besides the settings: it says which to read, or what to do with them."""

    flag: str
    help: str
    metavar: str = ""


CONFIG = Word(
    flag="--config",
    metavar="FILE",
    help="a TOML file of settings, instead of [tool.bridgehead] in the nearest pyproject.toml",
)
CHECK = Word(
    flag="--check", help="load the settings and the application, and exit: with 0, or with 3 and the reason"
)
PRINT = Word(flag="--print-config", help="print every setting and where it is from, and exit")
TOML = Word(flag="--toml", help="with --print-config: as a file for --config that says the same")
WORDS = (CONFIG, CHECK, PRINT, TOML)


class Task(Enum):
    """What to do with the settings."""

    SERVE = auto()
    CHECK = auto()
    PRINT = auto()
    PRINT_TOML = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """What was asked for in words."""

    given: Mapping[str, Given]
    config: Given | None
    task: Task
    doubts: Sequence[str]  # what was written and does not count


def read_command_line(argv: Sequence[str]) -> CommandLine:
    """Take the words apart; `--help` and `--version` end the process here."""
    parser = _parser()
    words, left_out = written_out(argv, parser.flags)
    parsed, unknown = parser.parse_known_args(words)
    refuse_uvicorns(unknown)
    parser.refuse_unknown(
        unknown,
        unexpected="one TARGET is enough; options begin with --",
        others=NEAR_NAMES,
        successors=SUCCESSORS,
    )
    written = vars(parsed)
    given = {
        option.name: Given(value=written[option.name], source=option.flags)
        for option in OPTIONS
        if option.name in written
    }
    named = written.get(CONFIG.flag)
    config = None if named is None else Given(value=named, source=CONFIG.flag)
    return CommandLine(given=given, config=config, task=_task(written), doubts=[*left_out, *parser.repeated])


def _task(written: Mapping[str, object]) -> Task:
    if CHECK.flag in written and PRINT.flag in written:
        raise StartError(f"{CHECK.flag} and {PRINT.flag} are two things to do", "give one after the other")
    if TOML.flag in written:
        if PRINT.flag not in written:
            raise StartError(f"{TOML.flag} says how to print", f"write {PRINT.flag} {TOML.flag}")
        return Task.PRINT_TOML
    if PRINT.flag in written:
        return Task.PRINT
    return Task.CHECK if CHECK.flag in written else Task.SERVE


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        sys.stdout.write(version_line() + "\n")
        parser.exit()


def _parser() -> Parser:
    parser = Parser(prog="serve", usage="serve [TARGET] [options]", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_options(OPTIONS)
    section = parser.add_argument_group("Configuration")
    for word in WORDS:
        kind: dict[str, Any] = {"metavar": word.metavar} if word.metavar else {"action": "store_true"}
        section.add_argument(word.flag, dest=word.flag, default=argparse.SUPPRESS, help=word.help, **kind)
    others = parser.add_argument_group("Others")
    others.add_argument("-h", "--help", action="help", help="show this and exit")
    others.add_argument(
        "--version", action=_Version, nargs=0, default=argparse.SUPPRESS, help="show the version and exit"
    )
    return parser


def version_line() -> str:
    """What `--version` says."""
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
