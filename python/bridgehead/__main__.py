"""`python -m bridgehead` is `serve`.

Not a second command: everything is in `cli.py`.

Invariant: it adds nothing.
"""

from bridgehead.cli import main

main()
