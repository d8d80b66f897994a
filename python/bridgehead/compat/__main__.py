"""`python -m bridgehead.compat fastapi run main.py`: runs a command with Bridgehead in uvicorn's place.

Not a server: it is the command that starts one.

Invariant: the command sees its own words, and ends as it would by itself.
"""

import runpy
import shutil
import sys

from bridgehead import compat

_USAGE = """usage: python -m bridgehead.compat COMMAND [words]
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
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    if words[0] == compat.NAME:
        sys.argv = words
        runpy.run_module(compat.NAME, run_name="__main__", alter_sys=True)
        return
    script = shutil.which(words[0])
    if script is None:
        sys.exit(f"there is no command {words[0]!r} on PATH; -m runs a module")
    sys.argv = [script, *words[1:]]
    try:
        runpy.run_path(script, run_name="__main__")
    except (SyntaxError, ValueError) as error:
        # A program of another language has no code of Python's.
        sys.exit(f"{script} is no script of Python's ({error}); -m runs a module")


if __name__ == "__main__":
    main(sys.argv[1:])
