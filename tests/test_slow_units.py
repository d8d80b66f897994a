"""What a fuzzer found slow is judged once more: by itself, and by its best time.

The fuzzer here is a script that says what it took: a real one would have to be as slow as it says.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / ".ci" / "slow-units"
# The first line of an input is what it takes; it is taken away, and the next is what it takes then.
FUZZER = """#!/bin/sh
for unit; do :; done
took=$(head -n 1 "$unit")
sed -i 1d "$unit"
[ -n "$took" ] || exit 77
echo "Executed $unit in $took ms" >&2
"""


@pytest.mark.parametrize(
    ("took", "code", "said"),
    [
        (None, 0, ""),
        ("20 10 30", 0, ""),
        # Others had the processor while it was found, and once more.
        ("4000 1000 999", 0, ""),
        ("1000 1001 1000", 1, "takes 1000 ms, and less than 1000 are due"),
        ("2000", 1, "did not come to its end"),
    ],
)
def test_an_input_that_takes_a_second_each_time_it_is_run_fails(
    took: str | None, code: int, said: str, tmp_path: Path
) -> None:
    fuzzer = tmp_path / "fuzzer"
    fuzzer.write_text(FUZZER)
    fuzzer.chmod(0o755)
    found = tmp_path / "found"
    found.mkdir()
    (found / "crash-of-another-kind").write_text("9000")
    unit = found / "slow-unit-1"
    if took is not None:
        unit.write_text(took.replace(" ", "\n") + "\n")
    done = subprocess.run([SCRIPT, fuzzer, found], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, said in done.stdout) == (code, True), done
    assert unit.exists() == (code == 1)
