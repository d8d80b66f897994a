"""anyio's task groups, locks and memory streams."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
from anyio.abc import TaskStatus

from fidelity.account import Seen
from fidelity.registry import case
from fidelity.turns import soon


def cancelling() -> int:
    task = asyncio.current_task()
    assert task is not None
    return task.cancelling()


async def wait_long(seen: Seen, name: str) -> None:
    try:
        await anyio.sleep(60)
    finally:
        seen("ended", name)


async def fail(error: BaseException) -> None:
    await anyio.sleep(0)
    raise error


@case()
async def a_group_waits(seen: Seen) -> None:
    async def work(number: int) -> None:
        await anyio.sleep(0)
        seen(number)

    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(work, number, name=f"work {number}")
    seen("left")


@case()
async def a_failing_child_ends_the_group(seen: Seen) -> None:
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(wait_long, seen, "a")
            group.start_soon(fail, ValueError("failed"))
            await anyio.sleep(60)
    except BaseException as error:
        seen(type(error), [each.args for each in getattr(error, "exceptions", ())], cancelling())


@case()
async def a_group_is_cancelled(seen: Seen) -> None:
    async with anyio.create_task_group() as group:
        for _ in range(2):
            # They are cancelled in the order of a set.
            group.start_soon(wait_long, seen, "a or b")
        await anyio.sleep(0.001)
        group.cancel_scope.cancel()
        try:
            await anyio.sleep(60)
        finally:
            seen("body")
    seen(group.cancel_scope.cancelled_caught, cancelling())


@case()
async def a_child_cancels_the_group(seen: Seen) -> None:
    async with anyio.create_task_group() as group:

        async def cancel() -> None:
            group.cancel_scope.cancel()

        group.start_soon(wait_long, seen, "other")
        group.start_soon(cancel)
        await seen.world.wait_for_ever()
    seen(group.cancel_scope.cancelled_caught, cancelling())


@case()
async def a_child_reports_that_it_has_started(seen: Seen) -> None:
    async def serve(*, task_status: TaskStatus[str]) -> None:
        await anyio.sleep(0)
        task_status.started("ready")
        await wait_long(seen, "serving")

    async with anyio.create_task_group() as group:
        seen(await group.start(serve))
        group.cancel_scope.cancel()


@case()
async def a_child_ends_before_it_has_started(seen: Seen) -> None:
    async def silent(*, task_status: TaskStatus[str]) -> None:  # noqa: ARG001
        await anyio.sleep(0)

    async def failing(*, task_status: TaskStatus[str]) -> None:  # noqa: ARG001
        raise ValueError("before the start")

    async with anyio.create_task_group() as group:
        for function in (silent, failing):
            try:
                await group.start(function)
            except (RuntimeError, ValueError) as error:
                seen(type(error), error.args)


@case()
async def groups_in_groups(seen: Seen) -> None:
    async def inner() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(wait_long, seen, "inner")
            group.start_soon(fail, ValueError("inner"))

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(wait_long, seen, "outer")
            group.start_soon(inner)
    except BaseException as error:
        seen(error.args[0], type(error))


@case()
async def a_group_is_cancelled_natively(seen: Seen) -> None:
    task = asyncio.current_task()
    assert task is not None
    soon(task.cancel, "native")
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(wait_long, seen, "child")
            await anyio.sleep(60)
    except asyncio.CancelledError as error:
        seen(error.args, task.cancelling(), task.uncancel())


@case()
async def memory_streams(seen: Seen) -> None:
    send, receive = anyio.create_memory_object_stream[int](1)

    async def produce() -> None:
        async with send:
            for number in range(4):
                await send.send(number)
                seen("sent", number)

    async with anyio.create_task_group() as group:
        group.start_soon(produce)
        async with receive:
            async for number in receive:
                seen("got", number)


@case()
async def what_memory_streams_refuse(seen: Seen) -> None:
    send, receive = anyio.create_memory_object_stream[int](1)
    send.send_nowait(1)
    for attempt in (lambda: send.send_nowait(2), lambda: [receive.receive_nowait() for _ in range(2)]):
        try:
            attempt()
        except (anyio.WouldBlock, anyio.EndOfStream) as error:
            seen(type(error))
    send.close()
    try:
        await receive.receive()
    except anyio.EndOfStream as error:
        seen(type(error))
    receive.close()


@case()
async def a_receive_of_a_memory_stream_times_out(seen: Seen) -> None:
    send, receive = anyio.create_memory_object_stream[int](0)
    with anyio.move_on_after(0.01) as scope:
        await receive.receive()
    seen(scope.cancelled_caught, send.statistics())
    send.close()
    receive.close()


@case()
async def anyios_locks(seen: Seen) -> None:
    lock, event, semaphore, condition = anyio.Lock(), anyio.Event(), anyio.Semaphore(1), anyio.Condition()

    async def work(name: str) -> None:
        async with lock, semaphore:
            seen(name)
            await anyio.sleep(0)
        event.set()

    async with anyio.create_task_group() as group:
        for name in "abc":
            group.start_soon(work, name)
        await event.wait()
        async with condition:
            condition.notify_all()
    try:
        lock.release()
    except RuntimeError as error:
        seen(error.args)
    async with lock:
        try:
            await lock.acquire()
        except RuntimeError as error:
            seen(error.args)
        seen(lock.statistics().locked)


@case()
async def a_capacity_limiter(seen: Seen) -> None:
    limiter = anyio.CapacityLimiter(2)
    most = inside = 0

    async def work() -> None:
        nonlocal most, inside
        async with limiter:
            inside += 1
            most = max(most, inside)
            await anyio.sleep(0)
            inside -= 1

    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(work)
    seen(most, limiter.borrowed_tokens, limiter.available_tokens)
    async with limiter:
        try:
            await limiter.acquire()
        except RuntimeError as error:
            seen(str(error).partition("<")[0])


@case()
async def what_anyio_says_of_the_task(seen: Seen) -> None:
    info = anyio.get_current_task()
    task = asyncio.current_task()
    assert task is not None
    seen(info.id == id(task), info.name == task.get_name(), info.has_pending_cancellation())
    seen(info in anyio.get_running_tasks(), info.coro is task.get_coro())
    with anyio.CancelScope() as scope:
        scope.cancel()
        seen(info.has_pending_cancellation())
    child: list[Any] = []

    async def look() -> None:
        child.append(anyio.get_current_task().parent_id == id(task))

    async with anyio.create_task_group() as group:
        group.start_soon(look, name="named")
    seen(child)


@case()
async def run_vars_are_of_this_loop(seen: Seen) -> None:
    import anyio.lowlevel

    variable = anyio.lowlevel.RunVar[str]("fidelity", default="not set")
    seen(variable.get())
    token = variable.set("set")
    await anyio.sleep(0)
    seen(variable.get())
    variable.reset(token)


@case()
async def anyios_tcp_streams(seen: Seen) -> None:
    async def echo(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.send(await stream.receive())

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, echo)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(b"anyio")
            seen(await stream.receive())
        group.cancel_scope.cancel()


@case()
async def anyios_processes(seen: Seen) -> None:
    done = await anyio.run_process(["sh", "-c", "echo anyio; exit 0"])
    seen(done.stdout, done.returncode)
