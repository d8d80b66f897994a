"""Where child processes begin: environment, folder, rights.

Not the children (`offspring.py`): who may have some later needs nothing of theirs yet.

Invariant: what is written here is of the start; the application may have changed its own since.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bridgehead.identity import Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where children begin: the environment, and the folder unless it is the current one."""

    environ: Mapping[str, str]
    folder: str | None = None
    identity: Identity | None = None

    @property
    def rights(self) -> dict[str, Any]:
        """As `subprocess` has them."""
        if self.identity is None:
            return {}
        user, group, groups = self.identity.user, self.identity.group, self.identity.groups
        return {"user": user, "group": group, "extra_groups": groups}
