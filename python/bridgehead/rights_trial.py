"""Whether whom `--user` and `--group` name may run Python and read the application: asked before the start.

Not who that is (`identity.py`). A program with their rights looks: `python -m bridgehead.rights_trial FILE…`.

Invariant: what is refused here no worker could have done, so nothing is refused that would have served.
"""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import PathFinder
from importlib.util import cache_from_source
from pathlib import Path

from bridgehead.config import Config
from bridgehead.errors import OUR_FOLDER, StartError
from bridgehead.home import Home
from bridgehead.identity import Identity
from bridgehead.offspring import interpreter
from bridgehead.target import parse_target

_PATIENCE = 30.0  # seconds; who takes longer is not judged
_READ, _ENTER = 4, 1  # as modes have them; to run a file is to enter it


def insist(config: Config, home: Home) -> None:
    """`StartError` if workers could not start for want of rights."""
    if home.identity is None:
        return
    given = (("--user", config.user), ("--group", config.group))
    whose = " ".join(f"{option} {name}" for option, name in given if name is not None)
    command = interpreter("bridgehead.rights_trial", *_files(config))
    try:
        ended = subprocess.run(
            command,
            env=dict(home.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="backslashreplace",
            timeout=_PATIENCE,
            check=False,
            **home.rights,
        )
    except PermissionError as problem:
        raise _refusal(whose, home.identity, problem) from None
    except (OSError, subprocess.TimeoutExpired):
        return  # the machine's affair, and it may pass: workers are tried again
    if ended.returncode != 0:
        said = (ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"])[-1]
        message = f"Python does not start with {whose}: {said}"
        where = (sys.base_prefix, sys.prefix, OUR_FOLDER.rstrip(os.sep))
        shut = next(filter(None, (_shut(each, home.identity, _READ | _ENTER) for each in where)), None)
        raise StartError(message, _open_hint(shut or sys.prefix, "the environment", "r"))
    for file in json.loads(ended.stdout.splitlines()[-1]):
        shut = _shut(file, home.identity, _READ) or file
        raise StartError(f"{whose} may not read the application: {file}", _open_hint(shut, "it", "r"))


def _refusal(whose: str, identity: Identity, problem: PermissionError) -> StartError:
    if problem.errno == errno.EPERM:
        hint = "grant this process CAP_SETUID and CAP_SETGID, or start it as that user and leave them out"
        return StartError(f"{whose}: this process may become nobody else", hint)
    shut = _shut(sys.executable, identity, _ENTER) or sys.executable
    return StartError(f"{whose} may not run Python: {sys.executable}", _open_hint(shut, "Python", "x"))


def _open_hint(shut: str, what: str, right: str) -> str:
    right = "x" if os.path.isdir(shut) else right
    return f"{shut} is shut to them: have {what} elsewhere, or open that, as by `chmod o+{right} {shut}`"


def _shut(path: str, identity: Identity, wanted: int) -> str | None:
    """The first part of a path whose mode keeps them out; None: whatever does, it is not the mode."""
    for whole in (Path(os.path.abspath(path)), Path(path).resolve()):
        for part in (*reversed(whole.parents), whole):
            if _granted(part, identity) & (needed := wanted if part == whole else _ENTER) != needed:
                return str(part)
    return None


def _granted(part: Path, identity: Identity) -> int:
    try:
        found = part.stat()
    except OSError:
        return _READ | _ENTER  # not there: no question of rights
    if found.st_uid == identity.user:
        return found.st_mode >> 6
    ours = found.st_gid == identity.group or found.st_gid in identity.groups
    return found.st_mode >> 3 if ours else found.st_mode


def _files(config: Config) -> Iterator[str]:
    """The target's file, and those of the packages it is in, as far as they are found without an import."""
    folder = os.path.abspath(config.app_dir or os.curdir)
    try:
        wanted = parse_target(str(config.app))
    except StartError:
        return  # a worker says so
    if not wanted.is_file:
        yield from _modules(wanted.place.split("."), [folder, *sys.path])
        return
    for file in (Path(folder, wanted.place), Path(wanted.place)):
        if file.is_file():
            yield os.path.abspath(file)
            return


def _modules(names: Iterable[str], places: Iterable[str]) -> Iterator[str]:
    for name in names:
        spec = PathFinder.find_spec(name, [*places])
        if spec is None:
            return  # it is not there, or somebody else's to find
        if spec.origin is not None and os.path.isfile(spec.origin):
            yield os.path.abspath(spec.origin)
        if spec.submodule_search_locations is None:
            return
        places = [*spec.submodule_search_locations]


def main() -> None:
    """With the rights in question: come as far as a worker does, and say which files cannot be read."""
    import bridgehead.child  # noqa: F401 (whether it can be)

    sys.stdout.write(f"\n{json.dumps([each for each in sys.argv[1:] if not _is_readable(each)])}\n")


def _is_readable(file: str) -> bool:
    """As a module: what was compiled of it before will do."""
    return any(os.access(each, os.R_OK) for each in (file, cache_from_source(file)))


if __name__ == "__main__":
    main()
