"""`python -m in_a_thread TARGET …` is `serve`, with the loop on a thread that is not the main one.

Not another server: what runs is `alone.run`, as a program that embeds it would call it. With `OWN_HANDLERS`
in the environment the main thread has signal handlers of its own.
"""

from __future__ import annotations

import os
import sys
import threading

from lifecycle_app import install, say

from bridgehead import log
from bridgehead.alone import run
from bridgehead.cli import read_config


def main() -> None:
    config = read_config(sys.argv[1:], {})
    log.configure(config)
    if os.environ.get("OWN_HANDLERS"):
        install("main thread's")
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(run(config, os.environ)))
    thread.start()
    thread.join()
    say(f"joined {codes}")
    sys.exit(codes[0] if codes else 1)


if __name__ == "__main__":
    main()
