"""What a container runs: the words of a manifest and those of its image, put together as the kubelet does.

Not a reader of YAML or of Dockerfiles at large: of those of `examples/deploy` and `docs/deploy.md`.
Their lists are one line each.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KUBERNETES = ROOT / "examples" / "deploy" / "kubernetes"
# Those that start a container.
MANIFESTS = [
    path for path in sorted(KUBERNETES.glob("*.yaml")) if "containers:" in path.read_text(encoding="utf-8")
]


def entry_point(dockerfile: str) -> list[str]:
    """What an image starts by itself."""
    [words] = re.findall(r"^ENTRYPOINT (\[.*\])$", dockerfile, re.M)
    found: list[str] = json.loads(words)
    return found


def _images() -> dict[str, list[str]]:
    page, file = ROOT / "docs" / "deploy.md", ROOT / "examples" / "deploy" / "docker" / "Dockerfile"
    [shown] = re.findall(r"^```dockerfile\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    images = {page: shown, file: file.read_text(encoding="utf-8")}
    return {str(path.relative_to(ROOT)): entry_point(text) for path, text in images.items()}


# What each image that we tell how to make starts by itself.
IMAGES = _images()


def started(manifest: str, entry: list[str]) -> list[str]:
    """The command line in the container: `command` replaces what the image starts, `args` follow it."""
    given = {}
    for name, words in re.findall(r"^ +(command|args): \[(.+)\]$", manifest, re.M):
        given[name] = [word.strip('" ') for word in words.split(",")]
    return given.get("command", entry) + given.get("args", [])
