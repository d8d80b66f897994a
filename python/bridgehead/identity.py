"""Whom processes run as, and what is taken from the rights of their files: users, groups and a umask.

Not when a process is started (`offspring.py`): the parent keeps its own rights, and gives a child fewer.

Invariant: what cannot be had is an error before anything is served, never a worker with more rights.
"""

import grp
import os
import pwd
from dataclasses import dataclass

from bridgehead.config import Config
from bridgehead.errors import StartError


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A user and groups, by their numbers."""

    user: int
    group: int
    groups: tuple[int, ...]


def identity(config: Config) -> Identity | None:
    """Whom workers run as; None: as whoever started the server."""
    if config.user is None and config.group is None:
        return None
    name, user, group = _user(config.user)
    if config.group is not None:
        group = _group(config.group)
    wanted = Identity(user=user, group=group, groups=_groups(name, group))
    if os.geteuid() != 0:
        if (user, group) == (os.geteuid(), os.getegid()):
            return None
        raise StartError("--user and --group need the rights of root", "start as root, or leave them out")
    return wanted


def set_umask(config: Config) -> None:
    """For this process, and all that it starts."""
    if config.umask is not None:
        os.umask(int(config.umask, 8))


def _user(given: str | None) -> tuple[str | None, int, int]:
    try:
        if given is None:
            return None, os.geteuid(), os.getegid()
        found = pwd.getpwuid(int(given)) if given.isdecimal() else pwd.getpwnam(given)
    except KeyError:
        if given is not None and given.isdecimal():  # as in containers
            return None, int(given), os.getegid()
        raise StartError(f"--user: there is no user {given!r}", "create it, or give a number") from None
    return found.pw_name, found.pw_uid, found.pw_gid


def _group(given: str) -> int:
    try:
        return int(given) if given.isdecimal() else grp.getgrnam(given).gr_gid
    except KeyError:
        raise StartError(f"--group: there is no group {given!r}", "create it, or give a number") from None


def _groups(name: str | None, group: int) -> tuple[int, ...]:
    return (group,) if name is None else tuple(os.getgrouplist(name, group))
