"""Says whose a request's instructions are: `python loadtests/shares.py` prints a Markdown table.

Each function's own instructions, by callgrind, and of which library it is; ours has hyper and Tokio in it.
Not who called it, nor what is inside ours: flame.py draws that. The kernel is not in it.

Invariant: the shares of a case are of all its instructions, and come to 100 %.
"""

import argparse
import re
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from callgrind import named
from cases import CASES, Case
from instructions import counted

ITEM = b'{"name": "a cup", "price": 3.5, "tags": ["blue"]}'
UVLOOP = ("--loop=uvloop",)
# The rows of the yardstick that do more than answer, on its loop.
WAITING = (
    Case("hello", options=UVLOOP, connections=16, rounds=60),
    Case("twenty coroutines", app="apps:coroutines", options=UVLOOP, connections=16, rounds=40),
    Case("ten sleep(0)", app="apps:yields", options=UVLOOP, connections=16, rounds=30),
    Case("sleep(0.01)", app="apps:sleeps", options=UVLOOP, connections=16, rounds=30),
    Case("anyio.to_thread", app="apps:threads", options=UVLOOP, connections=16, rounds=30),
    Case(
        "FastAPI, pydantic body",
        app="frameworks:api",
        path="/items/7?verbose=true",
        headers=b"Content-Type: application/json\r\n",
        body=ITEM,
        due=b'{"number":7,"verbose":true,"name":"a cup","price":3.5}',
        options=UVLOOP,
        connections=16,
        rounds=20,
    ),
)
COLUMNS = ("Bridgehead", "CPython", "uvloop", "C library", "others")
_LIBC = re.compile(r"/(?:libc|libpthread|ld-linux|libm)[.-]|/vgpreload|/ld-")


def main() -> None:
    """Count each, and share it out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="cases with this in their names")
    options = parser.parse_args()
    cases = {case.name: case for case in (*CASES, *WAITING)}.values()
    usual = [case for case in cases if case in WAITING]
    wanted = [case for case in (cases if options.only else usual) if options.only in case.name]
    if not wanted:
        parser.error(f"no case has {options.only!r} in its name")
    print(f"| case | instructions | {' | '.join(COLUMNS)} |")
    print(f"|{'---|' * (len(COLUMNS) + 2)}")
    for case in wanted:
        with TemporaryDirectory() as folder:
            found = shares(counted(case, Path(folder)).read_text())
        print(line(case, found), flush=True)


def line(case: Case, found: Counter[str]) -> str:
    """A row: all of it for one request, and each share."""
    whole = found.total()
    parts = [f"{found[column] / whole:.0%}" for column in COLUMNS]
    return f"| {case.name} | {whole / (case.rounds * case.connections):,.0f} | {' | '.join(parts)} |"


def shares(counts: str) -> Counter[str]:
    """callgrind's format: costs stand below the library that has them, those of calls between them."""
    found: Counter[str] = Counter()
    libraries: dict[str, str] = {}
    whose, is_call = "others", False
    for line in counts.splitlines():
        if line.startswith("ob="):
            whose = owner(named(libraries, line[3:]))
        elif line.startswith("cob="):
            named(libraries, line[4:])
        elif line.startswith("calls="):
            is_call = True
        elif line[:1].isdigit() or line[:1] in ("+", "-", "*"):
            if not is_call:
                found[whose] += int(line.split()[1])
            is_call = False
    return found


def owner(library: str) -> str:
    """In which column it is counted."""
    if "_native" in library:
        return "Bridgehead"
    if _LIBC.search(library):
        return "C library"
    if "uvloop" in library:
        return "uvloop"
    is_python = re.search(r"libpython|/python3[^/]*$|lib-dynload", library)
    return "CPython" if is_python else "others"


if __name__ == "__main__":
    main()
