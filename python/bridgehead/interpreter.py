"""Whether this Python can serve: one whose threads take turns, by its lock (GIL).

Not its version, which the package declares.

Invariant: what relies on the lock is never run without it.
"""

import sys

from bridgehead.errors import StartError


def check() -> None:
    """Refuse a free-threaded Python whose lock is kept off."""
    # Turns the lock on, as whatever the application has imported may do; `-X gil=0` has it stay off.
    import bridgehead._native  # noqa: F401

    is_enabled = getattr(sys, "_is_gil_enabled", None)  # not before 3.13
    if is_enabled is not None and not is_enabled():
        raise StartError(
            "Python runs without its lock (GIL), which Bridgehead relies on",
            "leave out `-X gil=0` and PYTHON_GIL=0, or take a Python that is not free-threaded",
        )
