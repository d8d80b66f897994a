"""`python -m bridgehead` is `bridgehead`.

Not a second command: everything is in `cli.py`.

Invariant: it adds nothing.
"""

from bridgehead.cli import bridgehead

bridgehead()
