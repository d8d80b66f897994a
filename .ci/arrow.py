"""Holds the arrow between the crates: asgi knows no runtime, and one crate knows Python.

Not a judge of licences or sources: that is `deny.toml`, whose tool takes minutes to build.
Invariant: what a crate may not know, it does not reach through any other crate either.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

# What each crate reaches neither itself nor through others. A name covers its family: pyo3, pyo3-ffi.
FORBIDDEN = {
    "bridgehead-asgi": ("tokio", "mio", "hyper", "pyo3", "bridgehead"),
    "bridgehead-metrics": ("tokio", "hyper", "pyo3", "bridgehead"),
    "bridgehead-tls": ("tokio", "hyper", "pyo3", "bridgehead"),
    "bridgehead-coding": ("tokio", "mio", "hyper", "pyo3", "bridgehead"),
    "bridgehead-websocket": ("tokio", "mio", "hyper", "pyo3", "bridgehead-net", "bridgehead-python"),
    "bridgehead-proxies": ("tokio", "mio", "hyper", "pyo3", "bridgehead-net", "bridgehead-python"),
    "bridgehead-executor": ("hyper", "pyo3", "bridgehead"),
    "bridgehead-admission": ("tokio", "mio", "hyper", "pyo3", "bridgehead"),
    "bridgehead-frames": ("tokio", "mio", "hyper", "pyo3", "bridgehead"),
    "bridgehead-heads": ("tokio", "mio", "hyper", "pyo3", "bridgehead-net", "bridgehead-python"),
    "bridgehead-static": ("tokio", "mio", "hyper", "pyo3", "bridgehead-net", "bridgehead-python"),
    "bridgehead-net": (
        "pyo3",
        "bridgehead-python",
        "bridgehead-admin",
        "bridgehead-watch",
        "bridgehead-load",
    ),
    "bridgehead-admin": ("pyo3", "bridgehead-python", "bridgehead-watch", "bridgehead-load"),
    "bridgehead-otel": ("pyo3", "bridgehead-net", "bridgehead-python"),
    "bridgehead-watch": ("pyo3", "tokio", "hyper", "bridgehead"),
    # It measures the server, so it shares nothing with it but what both depend on.
    "bridgehead-load": ("pyo3", "bridgehead-python", "bridgehead-net", "bridgehead-asgi", "bridgehead-watch"),
}
# Who may name it in its Cargo.toml, tests included.
OWNERS = {"pyo3": {"bridgehead-python"}, "notify": {"bridgehead-watch"}}


def main() -> int:
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features"]
    metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    broken = [*reached(metadata), *owned(metadata)]
    for line in broken:
        print(line)
    if not broken:
        print(
            *(f"arrow: {crate} knows no {', '.join(names)}" for crate, names in FORBIDDEN.items()), sep="\n"
        )
    return bool(broken)


def reached(metadata: dict[str, Any]) -> list[str]:
    """What a crate is built from and must not know, with the way that leads there."""
    names = {package["id"]: package["name"] for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    members = {names[member]: member for member in metadata["workspace_members"]}
    broken = []
    for crate, forbidden in FORBIDDEN.items():
        seen = set()
        waiting = [(members[crate], crate)]
        while waiting:
            identity, way = waiting.pop()
            for dependency in nodes[identity]["deps"]:
                # What only its tests need is not part of a crate.
                for_tests = all(kind["kind"] == "dev" for kind in dependency["dep_kinds"])
                if for_tests or dependency["pkg"] in seen:
                    continue
                seen.add(dependency["pkg"])
                name = names[dependency["pkg"]]
                waiting.append((dependency["pkg"], f"{way} → {name}"))
                if any(is_of(name, family) for family in forbidden):
                    broken.append(f"{crate} must not know {name}: {way} → {name}")
    return broken


def owned(metadata: dict[str, Any]) -> list[str]:
    """Dependencies that a crate names and another one owns."""
    members = set(metadata["workspace_members"])
    return [
        f"only {', '.join(sorted(owners))} may name {dependency['name']}; {package['name']} does"
        for package in metadata["packages"]
        if package["id"] in members
        for dependency in package["dependencies"]
        for family, owners in OWNERS.items()
        if is_of(dependency["name"], family) and package["name"] not in owners
    ]


def is_of(name: str, family: str) -> bool:
    return name == family or name.startswith(f"{family}-")


if __name__ == "__main__":
    sys.exit(main())
