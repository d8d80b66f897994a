"""Subprocesses."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT

from fidelity.account import Seen
from fidelity.registry import case

# Not Python: a case is to take milliseconds.
SHELL = "/bin/sh"


@case()
async def what_a_child_says(seen: Seen) -> None:
    child = await asyncio.create_subprocess_exec(
        SHELL, "-c", "echo out; echo err >&2; exit 3", stdout=PIPE, stderr=PIPE
    )
    out, err = await child.communicate()
    seen(out, err, child.returncode)


@case()
async def what_a_child_is_told(seen: Seen) -> None:
    child = await asyncio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE)
    out, err = await child.communicate(b"told " * 1000)
    seen(len(out), err, child.returncode)


@case()
async def a_shell(seen: Seen) -> None:
    child = await asyncio.create_subprocess_shell("echo $((6 * 7)); exit 1", stdout=PIPE, stderr=STDOUT)
    seen(await child.communicate(), await child.wait())


@case()
async def a_child_is_killed(seen: Seen) -> None:
    child = await asyncio.create_subprocess_exec("sleep", "60")
    seen(child.returncode)
    child.kill()
    seen(await child.wait(), child.returncode)


@case()
async def a_child_is_read_line_by_line(seen: Seen) -> None:
    child = await asyncio.create_subprocess_exec(SHELL, "-c", "echo a; echo b; printf c", stdout=PIPE)
    assert child.stdout is not None
    async for line in child.stdout:
        seen(line)
    seen(await child.wait())


@case()
async def a_child_that_is_not_there(seen: Seen) -> None:
    try:
        await asyncio.create_subprocess_exec("/no/such/program", stdout=DEVNULL)
    except FileNotFoundError as error:
        seen(error.errno)


@case()
async def a_child_outlives_a_timeout(seen: Seen) -> None:
    child = await asyncio.create_subprocess_exec("sleep", "60")
    try:
        async with asyncio.timeout(0.01):
            await child.wait()
    except TimeoutError:
        seen("timed out", child.returncode)
    child.terminate()
    seen(await child.wait())


@case()
async def three_children_at_once(seen: Seen) -> None:
    async def run(code: int) -> int:
        child = await asyncio.create_subprocess_exec(SHELL, "-c", f"exit {code}")
        return await child.wait()

    seen(await asyncio.gather(*(run(code) for code in (0, 1, 2))))


@case()
async def a_child_of_the_same_python(seen: Seen) -> None:
    child = await asyncio.create_subprocess_exec(sys.executable, "-Sc", "print('child')", stdout=PIPE)
    seen((await child.communicate())[0])
