"""`python -m bridgehead.compat fastapi run main.py`: runs a command with Bridgehead in uvicorn's place.

Not a server: it is the command that starts one.

Invariant: the command sees its own words, and ends as it would by itself.
"""

import builtins
import importlib.util
import os
import runpy
import shutil
import sys
import zipfile
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

from bridgehead import compat

_USAGE = """usage: python -m bridgehead.compat COMMAND [words]
       python -m bridgehead.compat PROGRAM.py [words]
       python -m bridgehead.compat -m MODULE [words]

Runs a Python command (fastapi, litestar, uvicorn, your own) in which `import uvicorn` gives Bridgehead."""


def main(words: list[str]) -> None:
    """Run what the words say."""
    if not words or words[0] in ("-h", "--help"):
        sys.stdout.write(f"{_USAGE}\n")
        sys.exit(0 if words else 2)
    compat.install()
    if words[0] == "-m":
        if len(words) == 1:
            sys.exit(f"-m: name a module\n{_USAGE}")
        if not _is_module(words[1]):
            sys.exit(f"there is no module {words[1]!r} that could be run; -m takes a module, not a command")
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    if words[0] == compat.NAME:
        sys.argv = words
        runpy.run_module(compat.NAME, run_name="__main__", alter_sys=True)
        return
    script = _script(words[0])
    if script is None:
        looked = "beside this Python or on PATH, and no such file"
        sys.exit(f"there is no command {words[0]!r} {looked}; -m runs a module")
    sys.argv = [script, *words[1:]]
    if not sys.flags.safe_path:
        # As Python has it for a script. By `-m` it is the folder we were called from.
        sys.path[0] = str(Path(script).resolve().parent)
    _refuse_foreign(script)
    _run(script)


def _run(script: str) -> None:
    """As `python script` does: known by its whole path, in a module that is `__main__` to the end."""
    path = os.path.abspath(script)
    if zipfile.is_zipfile(path):
        runpy.run_path(script, run_name="__main__")
        return
    loader = SourceFileLoader("__main__", path)
    code = loader.source_to_code(Path(path).read_bytes(), path)
    module = ModuleType("__main__")
    vars(module).update(__file__=path, __cached__=None, __loader__=loader, __builtins__=builtins)
    sys.modules["__main__"] = module
    exec(code, vars(module))


def _refuse_foreign(script: str) -> None:
    """A command in another language has no code of Python's. What one of ours raises is its own affair."""
    if script.endswith(".py") or zipfile.is_zipfile(script):
        return
    try:
        compile(Path(script).read_bytes(), script, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        sys.exit(f"{script} is no script of Python's ({error}); -m runs a module")


def _is_module(name: str) -> bool:
    """Whether Python finds it; what it raises by itself is its own affair."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError as error:
        if name.startswith(f"{error.name}."):
            return False
        raise


def _script(word: str) -> str | None:
    """A program of Python's by its path, else a command: of this Python's environment, then of PATH."""
    if word.endswith(".py") and Path(word).is_file():
        return word
    return shutil.which(word, path=str(Path(sys.executable).parent)) or shutil.which(word)


if __name__ == "__main__":
    main(sys.argv[1:])
