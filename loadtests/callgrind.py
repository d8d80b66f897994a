"""What callgrind's files have in common, whatever is read in them: names are written once, and numbered.

Not how one is made (instructions.py), and not what its costs are of (shares.py, flame.py).

Invariant: a number stands for the name that it was first written with.
"""

import re

_NAME = re.compile(r"\((\d+)\)(?: (.*))?$")


def named(names: dict[str, str], written: str) -> str:
    """The name, which is kept if this is where it is written."""
    found = _NAME.match(written)
    assert found is not None, written
    if found[2] is not None:
        names[found[1]] = found[2]
    return names[found[1]]
