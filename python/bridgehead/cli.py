"""The commands `serve` and `bridgehead`: words in, exit code out.

Not the meaning of an option (`config.py`), not the server (`command.py`) and not the load generator
(`load/command.py`); this file puts them in order.

Invariant: whatever stops a start ends with exit code 3 and the next step on stderr; `--help` and `--version`
load nothing that serves.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from bridgehead.command_line import CommandLine, Task, read_command_line
from bridgehead.config import Config
from bridgehead.cores import workers
from bridgehead.errors import EXIT_START_FAILED, Interrupted, StartError
from bridgehead.settings import Settings, read_settings
from bridgehead.sources import strays

EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells report it


# The words after `bridgehead` that are no target.
LOAD = "load"
CTL = "ctl"

# Whatever says where to listen.
_ADDRESSES = ("bind", "host", "port", "uds", "fd")


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """`serve`: serve until told to stop, and end the process."""
    _end(_serve, argv)


def bridgehead(argv: Sequence[str] | None = None) -> NoReturn:
    """`bridgehead`: the same, and `bridgehead load` and `bridgehead ctl`."""
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == [LOAD]:
        _end(lambda words: _load(words[1:]), argv)
    if words[:1] == [CTL]:
        _end(lambda words: _ask(words[1:]), argv)
    _end(_serve, argv)


def _ask(words: Sequence[str]) -> int:
    from bridgehead.ctl import main as ctl

    return ctl(words)


def _end(command: Callable[[Sequence[str]], int], argv: Sequence[str] | None) -> NoReturn:
    _open_missing_descriptors()
    try:
        code = command(sys.argv[1:] if argv is None else argv)
    except StartError as problem:
        sys.stderr.write(problem.render())
        code = EXIT_START_FAILED
    except (KeyboardInterrupt, Interrupted):
        sys.exit(EXIT_INTERRUPTED)
    if argv is not None:
        sys.exit(code)  # a program that hands words over may catch it, and go on
    from bridgehead.leaving import leave

    leave(code)


def _load(words: Sequence[str]) -> int:
    from bridgehead.load.command import main as load

    return load(words)


def read_config(argv: Sequence[str], environ: Mapping[str, str]) -> Config:
    """The configuration that these words and this environment ask for."""
    line = read_command_line(argv)
    return read_settings(line.given, environ, _folder(), line.config).config


def _serve(argv: Sequence[str]) -> int:
    line = read_command_line(argv)
    folder = _folder()
    prints = line.task in (Task.PRINT, Task.PRINT_TOML)
    settings = read_settings(line.given, os.environ, folder, line.config)
    settings = settings.with_any_application(folder) if prints else settings.with_application(folder)
    if line.task is Task.SERVE and not (settings.config.reload or _has_a_parent(settings.config)):
        _stay_as_process_1()
    given = dict(os.environ)
    os.environ.update({name: each.value for name, each in settings.variables.items()})
    _tell(settings, line)
    if prints:
        from bridgehead.print_config import as_file, as_table, overruled

        if line.task is Task.PRINT_TOML:
            _warn(overruled(settings))
        text = as_file(settings) if line.task is Task.PRINT_TOML else as_table(settings)
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
        return 0
    if line.task is Task.SERVE:
        _take_passed_sockets(settings, given)
    if settings.config.reload and line.task is Task.SERVE:
        from bridgehead import reload

        reload.run(settings.config, given)  # each child reads the env file itself, as it then is
        return 0

    if line.task is Task.SERVE and _has_a_parent(settings.config):
        from bridgehead import supervisor

        supervisor.run(settings.config, given)  # the same
        return 0

    if line.task is Task.CHECK:
        from bridgehead.command import check

        return check(settings.config)

    from bridgehead.alone import run

    # Its successor reads the env file itself. Threads of an application that has served are waited for.
    sys.exit(run(settings.config, given))


def _take_passed_sockets(settings: Settings, given: dict[str, str]) -> None:
    """What a service manager has opened is listened on, unless something else is asked for."""
    from bridgehead import activation

    passed = activation.sockets()
    activation.take(given, os.getpid())
    if passed and not any(name in settings.resolved.origins for name in _ADDRESSES):
        settings.config.bind = tuple(f"fd://{number}" for number, _ in passed)


def _stay_as_process_1() -> None:
    """Go on in a child of it."""
    if os.getpid() == 1:
        from bridgehead.init_process import stay

        stay(os.environ)


def _has_a_parent(config: Config) -> bool:
    """From the start: several workers have one, and those that may not do what it does."""
    asked = (config.user, config.group, config.control_socket)
    return workers(config) > 1 or any(each is not None for each in asked)


def _folder() -> Path:
    try:
        return Path.cwd()
    except OSError:
        raise StartError("the current directory is not there any more", "change to one that is") from None


def _tell(settings: Settings, line: CommandLine) -> None:
    """What was read; who prints the settings sees that, but not what set nothing."""
    from bridgehead import log

    if line.task in (Task.PRINT, Task.PRINT_TOML):
        log.configure(Config(""))  # on stderr: stdout is for what is printed, wherever lines go otherwise
    else:
        log.configure(settings.config)
    _warn((*strays(os.environ), *line.doubts, *settings.doubts()))
    for sentence in settings.notes() if line.task in (Task.SERVE, Task.CHECK) else ():
        log.logger().info("%s", sentence)


def _warn(sentences: Iterable[str]) -> None:
    from bridgehead import log

    for sentence in sentences:
        log.logger().warning("%s", sentence)


def _open_missing_descriptors() -> None:
    """After `2>&-` a socket would get the number that is free, and whoever prints would write into it."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it gets the lowest number: this one
            if getattr(sys, name) is None:
                setattr(sys, name, os.fdopen(number, mode, closefd=False))
