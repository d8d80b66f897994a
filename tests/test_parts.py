"""What a wheel says that it is made of: a list of parts that names no machine, whoever has built it.

The wheel here is made by hand: a real one takes minutes; `make wheel` frees it by the same script or fails.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / ".ci" / "sbom.py"
LIST = "some-1.0.dist-info/sboms/some.cyclonedx.json"
RECORD = "some-1.0.dist-info/RECORD"
ORIGIN = "registry+https://index.test/list#"
BILL: dict[str, Any] = {
    "bomFormat": "CycloneDX",
    "serialNumber": "urn:uuid:dddd93ea-551a-4692-baad-7d0ecb93e09e",
    "metadata": {
        "timestamp": "2026-01-01T00:00:00Z",
        "component": {
            "bom-ref": "path+file:///somebody/some#1.0",
            "name": "some",
            "purl": "pkg:cargo/some@1.0?download_url=file://.",
            "components": [
                {
                    "bom-ref": "path+file:///somebody/some#1.0 bin-target-0",
                    "name": "_native",
                    "purl": "pkg:cargo/some@1.0?download_url=file://.#src/lib.rs",
                }
            ],
        },
    },
    "components": [
        {
            "bom-ref": f"{ORIGIN}other@2.0",
            "name": "other",
            "purl": "pkg:cargo/other@2.0",
            "hashes": [{"alg": "SHA-256", "content": "00"}],
            "externalReferences": [
                {"type": "documentation", "url": "https://pages.test/other"},
                {"type": "vcs", "url": "https://sources.test/other"},
            ],
        }
    ],
    "dependencies": [
        {"ref": "path+file:///somebody/some#1.0", "dependsOn": [f"{ORIGIN}other@2.0"]},
        {"ref": f"{ORIGIN}other@2.0"},
    ],
}


def wheel_of(path: Path, bill: dict[str, Any] | None) -> Path:
    with ZipFile(path, "w", ZIP_DEFLATED) as wheel:
        wheel.writestr("some/__init__.py", "")
        if bill is not None:
            wheel.writestr(LIST, json.dumps(bill))
        wheel.writestr(RECORD, f"some/__init__.py,,\n{LIST},sha256=old,1\n{RECORD},,\n")
    return path


def with_library(wheel: Path, library: bytes) -> Path:
    with ZipFile(wheel, "a", ZIP_DEFLATED) as added:
        added.writestr("some/_native.so", library)
    return wheel


def free(wheel: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-B", SCRIPT, wheel], capture_output=True, text=True, timeout=60, check=False
    )


def test_a_wheel_says_what_it_is_made_of_and_not_where_that_was(tmp_path: Path) -> None:
    wheel = wheel_of(tmp_path / "some.whl", BILL)
    run = free(wheel)
    assert run.returncode == 0, run.stderr
    with ZipFile(wheel) as after:
        text, record = after.read(LIST), after.read(RECORD).decode()
        assert after.read("some/__init__.py") == b""
        assert after.getinfo(LIST).compress_type == ZIP_DEFLATED
    bill = json.loads(text)
    some, other = "pkg:cargo/some@1.0", "pkg:cargo/other@2.0"
    assert bill["metadata"]["component"]["bom-ref"] == some
    assert bill["metadata"]["component"]["components"][0]["purl"] == f"{some}#src/lib.rs"
    assert bill["components"][0]["hashes"] == [{"alg": "SHA-256", "content": "00"}]
    assert bill["components"][0]["externalReferences"] == [
        {"type": "vcs", "url": "https://sources.test/other"}
    ]
    assert bill["dependencies"] == [{"ref": some, "dependsOn": [other]}, {"ref": other}]
    for word in (b"file:", b"somebody", b"index.test", b"registry+", b"2026"):
        assert word not in text
    digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
    assert f"\n{LIST},sha256={digest},{len(text)}\n" in record


def test_the_same_parts_have_the_same_list(tmp_path: Path) -> None:
    later = {
        **BILL,
        "serialNumber": "urn:uuid:another",
        "metadata": {**BILL["metadata"], "timestamp": "later"},
    }
    texts = []
    for number, bill in enumerate((BILL, later)):
        wheel = wheel_of(tmp_path / f"{number}.whl", bill)
        for _ in range(2):  # once more does no harm
            assert free(wheel).returncode == 0
        with ZipFile(wheel) as after:
            texts.append(after.read(LIST))
    assert texts[0] == texts[1]


def test_a_wheel_without_a_list_or_with_a_path_in_it_is_not_let_through(tmp_path: Path) -> None:
    run = free(wheel_of(tmp_path / "bare.whl", None))
    assert (run.returncode, "has no list of parts" in run.stderr) == (1, True)
    component = {**BILL["components"][0], "description": "built at file:///somebody"}
    wheel = wheel_of(tmp_path / "path.whl", {**BILL, "components": [component]})
    before = wheel.read_bytes()
    run = free(wheel)
    assert (run.returncode, "names a machine" in run.stderr) == (1, True)
    assert wheel.read_bytes() == before


def test_a_wheel_whose_library_names_a_folder_of_its_builder_is_not_let_through(tmp_path: Path) -> None:
    cargo = os.environ.get("CARGO_HOME") or f"{Path.home()}/.cargo"
    for place, code in ((b"/crates", 0), (f"{cargo}/registry/src".encode(), 1), (os.fsencode(Path.cwd()), 1)):
        wheel = with_library(
            wheel_of(tmp_path / "some.whl", BILL), b"\0" + place + b"/other-2.0/src/lib.rs\0"
        )
        run = free(wheel)
        assert run.returncode == code, (place, run.stderr)
