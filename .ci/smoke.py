"""What a wheel has to do once it is installed: `python .ci/smoke.py WHEEL`, by the Python that has it.

Not its tests: it says its version, quickly, and serves, and ends.
Invariant: exit code 0 only if it did, and if the wheel is no larger than it may be.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

MEGABYTE = 1_000_000
LARGEST = 6 * MEGABYTE
# Told and not judged: on a busy machine it says nothing.
LONGEST = 0.1
SERVE = str(Path(sys.executable).parent / "serve")
HELLO = str(Path(__file__).resolve().parents[1] / "examples" / "hello.py")


def main(wheel: Path) -> int:
    """Try it, and print a line."""
    size = wheel.stat().st_size
    takes = min(version_takes() for _ in range(10))
    slow = f" (more than {LONGEST * 1000:.0f})" if takes > LONGEST else ""
    print(f"{wheel.name}: {size / MEGABYTE:.2f} MB, --version in {takes * 1000:.0f} ms{slow}, says {ask()!r}")
    if size > LARGEST:
        print(f"{wheel.name}: larger than {LARGEST / MEGABYTE:.0f} MB", file=sys.stderr)
    return int(size > LARGEST)


def version_takes() -> float:
    """Seconds until `serve --version` has said it."""
    began = time.perf_counter()
    subprocess.run([SERVE, "--version"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def ask() -> str:
    """What the first example answers; the server has to end well."""
    command = [SERVE, HELLO, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as server:
        assert server.stderr is not None
        for line in server.stderr:
            if found := re.search(r"running on (http://\S+)", line):
                break
        else:
            raise SystemExit("it did not start")
        with urllib.request.urlopen(found[1], timeout=30) as answer:
            said: str = answer.read().decode()
        server.send_signal(signal.SIGTERM)
        server.stderr.read()
        if server.wait(30) != 0:
            raise SystemExit(f"it ended with {server.returncode}")
    return said.strip()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
