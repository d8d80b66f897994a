"""Frees the list of parts in a wheel of what its builder's machine alone knows: `.ci/sbom.py WHEEL…`.

Not the list's maker: maturin writes it into `dist-info/sboms` (PEP 770, CycloneDX), with paths, the
registry's address, the time and a number by chance.
Invariant: a wheel that passes has such a list, which names no path and no host of a machine or a registry,
and the same parts have the same list; and its library names no folder in which it was built.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from house import MACHINE

LIST = re.compile(r"[^/]+\.dist-info/sboms/[^/]+\.cyclonedx\.json")
RECORD = re.compile(r"[^/]+\.dist-info/RECORD")
# How cargo names where a part is from.
ORIGIN = re.compile(r"(?:path|registry|git|sparse)\+|\bfile:/")


def main() -> None:
    for wheel in map(Path, sys.argv[1:]):
        free(wheel)
        print(f"{wheel}: its list of parts and its library name no machine")


def free(wheel: Path) -> None:
    """Write the wheel anew, in its place."""
    with ZipFile(wheel) as old:
        entries = [(entry, old.read(entry)) for entry in old.infolist()]
    for entry, content in entries:
        if entry.filename.endswith(".so") and (found := folder_in(content)):
            sys.exit(f"{wheel}: {entry.filename} names {found}, where it was built: see .ci/remap")
    lists = {entry.filename: freed(content) for entry, content in entries if LIST.fullmatch(entry.filename)}
    if not lists:
        sys.exit(f"{wheel} has no list of parts: {LIST.pattern}")
    part = wheel.with_suffix(".part")
    with ZipFile(part, "w") as new:
        for entry, content in entries:
            if RECORD.fullmatch(entry.filename):
                content = recorded(content, lists)
            new.writestr(entry, lists.get(entry.filename, content))
    part.replace(wheel)


def folder_in(library: bytes) -> str | None:
    """One in which this machine builds: that of the sources, or cargo's."""
    folders = [Path.cwd(), Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")]
    return next((str(folder) for folder in folders if f"{folder}/".encode() in library), None)


def freed(content: bytes) -> bytes:
    bill: dict[str, Any] = json.loads(content)
    names = {part["bom-ref"]: name_of(part) for part in parts(bill)}
    for part in parts(bill):
        part["bom-ref"] = part["purl"] = names[part["bom-ref"]]
        # Where its source is kept; what is left out are pages.
        kept = [each for each in part.pop("externalReferences", ()) if each["type"] == "vcs"]
        if kept:
            part["externalReferences"] = kept
    for each in bill["dependencies"]:
        each["ref"] = names[each["ref"]]
        if "dependsOn" in each:
            each["dependsOn"] = sorted(names[part] for part in each["dependsOn"])
    bill["metadata"].pop("timestamp", None)
    bill.pop("serialNumber", None)
    bill["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(bill)).urn
    text = json.dumps(bill, indent=2, ensure_ascii=False)
    for line in text.splitlines():
        if MACHINE.search(line) or ORIGIN.search(line):
            sys.exit(f"the list of parts names a machine or a registry: {line.strip()}")
    return text.encode()


def parts(bill: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What the list is of, what that is made of, and all that it needs."""
    waiting = [bill["metadata"]["component"], *bill["components"]]
    while waiting:
        part = waiting.pop()
        waiting += part.get("components", ())
        yield part


def name_of(part: dict[str, Any]) -> str:
    """Its package's address, without where that was found."""
    return re.sub(r"\?[^#]*", "", part["purl"])


def recorded(record: bytes, lists: dict[str, bytes]) -> bytes:
    """The wheel's own list of files, with what the new lists come to."""
    lines = []
    for line in record.decode().splitlines():
        name = line.partition(",")[0]
        if name in lists:
            digest = base64.urlsafe_b64encode(hashlib.sha256(lists[name]).digest()).rstrip(b"=").decode()
            line = f"{name},sha256={digest},{len(lists[name])}"
        lines.append(line)
    return "\n".join([*lines, ""]).encode()


if __name__ == "__main__":
    main()
