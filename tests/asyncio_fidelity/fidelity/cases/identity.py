"""What the handler's task says of itself."""

from __future__ import annotations

import asyncio
import gc
import inspect
import io
import weakref
from typing import Any

from fidelity.account import Seen
from fidelity.registry import case


def task() -> Any:
    current = asyncio.current_task()
    assert current is not None
    return current


@case()
async def the_current_task_is_one_object_at_every_step(seen: Seen) -> None:
    first = task()
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_result, None)
    for pause in (asyncio.sleep(0), asyncio.sleep(0.001), future, asyncio.to_thread(int), asyncio.sleep(0)):
        await pause
        seen(task() is first, asyncio.current_task(asyncio.get_running_loop()) is first)


@case()
async def the_current_task_after_a_failure_and_a_cancellation(seen: Seen) -> None:
    first = task()
    try:
        async with asyncio.timeout(0):
            await asyncio.sleep(60)
    except TimeoutError:
        seen(task() is first)
    child = asyncio.create_task(asyncio.sleep(60))
    child.cancel()
    try:
        await child
    except asyncio.CancelledError:
        seen(task() is first)


@case()
async def children_are_other_tasks(seen: Seen) -> None:
    outer = task()

    async def look() -> bool:
        return task() is not outer

    seen(await asyncio.create_task(look()), await look(), task() is outer)


@case()
async def no_task_is_current_in_a_callback(seen: Seen) -> None:
    over = asyncio.Event()

    def look() -> None:
        seen(asyncio.current_task())
        over.set()

    asyncio.get_running_loop().call_soon(look)
    await over.wait()


@case()
async def it_is_a_task_and_a_future(seen: Seen) -> None:
    this = task()
    seen(isinstance(this, asyncio.Task), isinstance(this, asyncio.Future), asyncio.isfuture(this))
    seen(inspect.isawaitable(this), asyncio.iscoroutine(this), this._asyncio_future_blocking)
    seen(this.get_loop() is asyncio.get_running_loop())


@case()
async def its_type_as_it_shows_itself(seen: Seen) -> None:
    kind: Any = type(task())
    seen(repr(kind), kind.__name__, kind.__qualname__, kind.__module__, repr(kind[int]), kind)
    seen(object.__repr__(task()))


@case()
async def it_is_not_done(seen: Seen) -> None:
    this = task()
    for _ in range(2):
        seen(this.done(), this.cancelled(), this.cancelling())
        for ask in (this.result, this.exception):
            try:
                ask()
            except asyncio.InvalidStateError as error:
                seen(error)
        await asyncio.sleep(0)


@case()
async def it_refuses_a_result_from_outside(seen: Seen) -> None:
    for setter in (task().set_result, task().set_exception):
        try:
            setter(ValueError("x"))
        except RuntimeError as error:
            seen(error)
    await asyncio.sleep(0)
    seen(task().done())


@case()
async def it_has_a_name(seen: Seen) -> None:
    seen(task().get_name())
    for name in ("renamed", 5):
        task().set_name(name)
        await asyncio.sleep(0)
        seen(task().get_name())
    seen("5" in repr(task()))


@case()
async def it_is_among_all_tasks(seen: Seen) -> None:
    for _ in range(2):
        seen(task() in asyncio.all_tasks(), task() in asyncio.all_tasks(asyncio.get_running_loop()))
        await asyncio.sleep(0)
    over = asyncio.Event()
    this = task()

    def look() -> None:
        seen(this in asyncio.all_tasks(asyncio.get_running_loop()))
        over.set()

    asyncio.get_running_loop().call_soon(look)
    await over.wait()


@case()
async def it_is_among_all_tasks_seen_from_a_thread(seen: Seen) -> None:
    this, loop = task(), asyncio.get_running_loop()
    seen(await asyncio.to_thread(lambda: this in asyncio.all_tasks(loop)))


@case()
async def a_child_leaves_all_tasks_when_it_is_done(seen: Seen) -> None:
    child = asyncio.create_task(asyncio.sleep(0))
    seen(child in asyncio.all_tasks())
    await child
    seen(child in asyncio.all_tasks())


@case()
async def its_coroutine(seen: Seen) -> None:
    coroutine = task().get_coro()
    seen(asyncio.iscoroutine(coroutine), inspect.iscoroutine(coroutine), type(coroutine))
    seen(coroutine.cr_running, inspect.getcoroutinestate(coroutine))
    await asyncio.sleep(0)
    seen(task().get_coro() is coroutine)


@case()
async def its_coroutine_seen_while_it_waits(seen: Seen) -> None:
    coroutine = task().get_coro()
    over = asyncio.Event()

    def look() -> None:
        seen(coroutine.cr_running, inspect.getcoroutinestate(coroutine), coroutine.cr_await is not None)
        over.set()

    asyncio.get_running_loop().call_soon(look)
    await over.wait()


@case()
async def its_coroutine_cannot_be_driven_by_others(seen: Seen) -> None:
    coroutine = task().get_coro()
    for drive in (lambda: coroutine.send(None), lambda: coroutine.throw(ValueError), coroutine.close):
        try:
            drive()
        except (ValueError, RuntimeError) as error:
            seen(type(error), str(error))


@case()
async def its_stack_while_it_runs(seen: Seen) -> None:
    stack = task().get_stack()
    seen(len(stack) > 0, len(task().get_stack(limit=1)))


@case()
async def its_stack_while_it_waits(seen: Seen) -> None:
    over = asyncio.Event()
    this = task()

    def look() -> None:
        seen(len(this.get_stack()), len(this.get_stack(limit=1)))
        text = io.StringIO()
        this.print_stack(file=text)
        seen(text.getvalue().startswith("Stack for <"), text.getvalue().count("File"))
        over.set()

    asyncio.get_running_loop().call_soon(look)
    await over.wait()


@case()
async def the_shape_of_its_repr(seen: Seen) -> None:
    this = task()
    this.set_name("named")
    over = asyncio.Event()

    def shape() -> list[str]:
        # Without the callbacks: `asyncio.run` has one on the task it runs.
        head, _, tail = repr(this).partition(" coro=")
        words = [word.partition("=")[0] for word in tail.split(" ") if "=" in word]
        return [head.partition(" ")[2], *(word for word in words if word != "cb")]

    def look() -> None:
        seen("waiting", shape())
        over.set()

    seen("running", shape())
    asyncio.get_running_loop().call_soon(look)
    await over.wait()
    this.cancel()
    seen("cancelling", shape())
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        this.uncancel()


@case()
async def it_can_be_referred_to_weakly(seen: Seen) -> None:
    reference = weakref.ref(task())
    weak: weakref.WeakSet[Any] = weakref.WeakSet([task()])
    by_task: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary({task(): "value"})
    await asyncio.sleep(0)
    gc.collect()
    seen(reference() is task(), task() in weak, by_task[task()], len(by_task))


@case()
async def it_can_be_hashed_and_compared(seen: Seen) -> None:
    this = task()
    seen(hash(this) == hash(task()), this == task(), this != asyncio.get_running_loop(), {this: 1}[task()])


@case()
async def it_is_collected_by_nobody_while_it_waits(seen: Seen) -> None:
    for _ in range(3):
        asyncio.get_running_loop().call_soon(gc.collect)
        await asyncio.sleep(0)
        await asyncio.sleep(0.001)
    seen("still here")


@case()
async def done_callbacks_come_when_it_is_over_and_not_before(seen: Seen) -> None:
    called: list[Any] = []
    task().add_done_callback(called.append)
    task().add_done_callback(called.append)
    await asyncio.sleep(0)
    seen(len(called), task().remove_done_callback(called.append), task().remove_done_callback(called.append))


@case()
async def it_cannot_be_awaited_by_itself(seen: Seen) -> None:
    try:
        await task()
    except RuntimeError as error:
        seen(type(error), str(error).partition(":")[0])
    await asyncio.sleep(0)
    seen("goes on")


@case()
async def a_child_awaits_the_handler(seen: Seen) -> None:
    this = task()

    async def wait() -> None:
        try:
            await asyncio.wait_for(asyncio.shield(this), 0.01)
        except TimeoutError:
            seen("the handler is not over")

    await asyncio.create_task(wait())


@case()
async def a_child_waits_for_the_handler_and_is_cancelled(seen: Seen) -> None:
    this = task()

    async def wait() -> None:
        await asyncio.wait([this])

    child = asyncio.create_task(wait())
    await asyncio.sleep(0)
    child.cancel()
    try:
        await child
    except asyncio.CancelledError:
        seen(this.cancelling(), this.done())


@case()
async def a_child_that_awaits_the_handler_is_cancelled_and_takes_it_along(seen: Seen) -> None:
    this = task()

    async def wait() -> None:
        await this

    child = asyncio.create_task(wait())
    await asyncio.sleep(0)
    child.cancel("through the child")
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError as error:
        seen(error.args, this.cancelling(), this.uncancel())
    # It does not give in before the handler has: it is still waiting.
    seen(child.done(), child.cancelling())
    child.cancel()
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError as error:
        seen(error.args, this.uncancel())


@case()
async def it_has_attributes_as_a_task_has(seen: Seen) -> None:
    names = [name for name in dir(asyncio.Task) if not name.startswith("__")]
    seen([name for name in names if not hasattr(task(), name)])


@case()
async def what_it_waits_for_is_known(seen: Seen) -> None:
    """anyio looks at this."""
    this = task()
    seen(this._fut_waiter, this._must_cancel)
    future = asyncio.get_running_loop().create_future()

    def look() -> None:
        seen(this._fut_waiter is future, this._must_cancel)
        future.set_result(None)
        seen(this._fut_waiter is future)

    asyncio.get_running_loop().call_soon(look)
    await future
    seen(this._fut_waiter)
    this.cancel()
    seen(this._must_cancel)
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        seen(this._must_cancel, this.uncancel())


@case()
async def it_can_be_gathered_into_a_set(seen: Seen) -> None:
    child = asyncio.create_task(asyncio.sleep(0))
    done, pending = await asyncio.wait([task(), child], return_when=asyncio.FIRST_COMPLETED)
    seen(len(done), task() in pending)


@case()
async def its_type_can_be_named(seen: Seen) -> None:
    seen(type(task()).__name__, repr(task()).split(" ")[0])


@case()
async def it_cannot_be_pickled_or_copied(seen: Seen) -> None:
    import copy
    import pickle

    for attempt in (pickle.dumps, copy.copy):
        try:
            attempt(task())
        except TypeError as error:
            seen(type(error))


@case()
async def ensure_future_gives_it_back(seen: Seen) -> None:
    seen(asyncio.ensure_future(task()) is task(), asyncio.wrap_future(task()) is task())


@case()
async def two_requests_are_two_tasks(seen: Seen) -> None:
    this = task()
    facts: list[bool] = []

    async def look() -> None:
        facts.extend((task() is not this, this in asyncio.all_tasks(), this.done()))

    await seen.world.elsewhere(look)
    seen(facts)


@case()
async def another_requests_task_is_over_and_gone(seen: Seen) -> None:
    theirs: list[weakref.ref[Any]] = []

    async def leave() -> None:
        theirs.append(weakref.ref(task()))

    await seen.world.elsewhere(leave)
    for _ in range(20):
        await asyncio.sleep(0.001)
        gc.collect()
        if theirs[0]() is None:
            break
    seen(theirs[0]())


@case()
async def another_requests_done_callback_is_called(seen: Seen) -> None:
    over: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()

    def told(theirs: asyncio.Task[Any]) -> None:
        over.set_result([theirs.done(), theirs.cancelled(), theirs.exception(), asyncio.current_task()])

    async def add() -> None:
        task().add_done_callback(told)

    await seen.world.elsewhere(add)
    seen(await over)


@case()
async def another_requests_task_is_awaited(seen: Seen) -> None:
    theirs: asyncio.Future[asyncio.Task[Any]] = asyncio.get_running_loop().create_future()
    go = asyncio.Event()

    async def wait() -> None:
        theirs.set_result(task())
        await go.wait()

    errand = asyncio.create_task(seen.world.elsewhere(wait))
    other = await theirs
    asyncio.get_running_loop().call_soon(go.set)
    seen(await other, other.done(), other.result(), other.exception(), other.cancelled(), other.cancel())
    await errand
