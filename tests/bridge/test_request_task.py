"""The task that parks while Rust drives its coroutine, beside asyncio's own: one coroutine, one outcome.

Here both are made as `asyncio.Task` is, without a server; what requests see is in this folder's other files.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import io
import re
import sys
import traceback
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from typing import Any

import pytest

from bridgehead._native import Driver
from bridgehead.private_names import look_up, task_names
from bridgehead.request_task import RequestTask

Make = Callable[..., Any]
Scenario = Callable[[Make], Awaitable[object]]
variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="not set")
scenarios: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    scenarios[function.__name__] = function
    return function


def plain(coroutine: Coroutine[Any, Any, Any], **options: Any) -> Any:
    return asyncio.Task(coroutine, **options)


def ours(coroutine: Any, **options: Any) -> Any:
    if not asyncio.iscoroutine(coroutine):
        return RequestTask(coroutine, **options)
    context = options.pop("context", None) or contextvars.copy_context()
    driver = Driver(asyncio.get_running_loop(), task_names())
    return RequestTask(driver.park(coroutine, context), context=context, **options)


def said(value: object) -> str:
    """Without what differs from run to run."""
    return re.sub(r"0x[0-9a-f]+|Task-\d+|line \d+|:\d+", "…", str(value)).replace("RequestTask", "Task")


async def came_of(task: Awaitable[object]) -> object:
    try:
        return await task
    except BaseException as error:
        return f"{type(error).__name__}{error.args} after {said(error.__context__)!r}"


def facts(task: Any) -> dict[str, object]:
    return {
        "done": task.done(),
        "cancelled": task.cancelled(),
        "cancelling": task.cancelling(),
        "must cancel": task._must_cancel,
        "waits for": type(task._fut_waiter).__name__,
        "shown": said(repr(task)),
    }


# --- how a coroutine may end


@scenario
async def returns(make: Make) -> object:
    async def work(steps: int) -> int:
        for _ in range(steps):
            await asyncio.sleep(0)
        return steps

    tasks = [make(work(steps)) for steps in (0, 1, 2)]
    return [await task for task in tasks], [facts(task) for task in tasks]


@scenario
async def raises(make: Make) -> object:
    marked = ValueError("marked")

    async def work(steps: int) -> None:
        for _ in range(steps):
            await asyncio.sleep(0)
        raise marked

    found: list[object] = []
    for steps in (0, 1, 2):
        task = make(work(steps))
        found += [await came_of(task), task.exception() is marked, facts(task)]
    return found


@scenario
async def raises_what_a_future_refuses(make: Make) -> object:
    class Odd:
        """A coroutine that ends by an exception no coroutine can raise."""

        def __init__(self, steps: int) -> None:
            self.steps = steps

        def __await__(self) -> Any:
            return self

        def send(self, _value: object) -> None:
            if not self.steps:
                raise StopIteration("returned")
            self.steps -= 1

        def throw(self, *_: object) -> None:
            raise StopIteration("thrown")

        def close(self) -> None:
            pass

    return [await came_of(make(Odd(steps))) for steps in (0, 1, 2)]


@scenario
async def an_exception_keeps_its_way(make: Make) -> object:
    async def inner() -> None:
        await asyncio.sleep(0)
        raise LookupError("deep")

    async def work() -> None:
        await inner()

    task = make(work())
    with suppress(LookupError):
        await task
    return [frame.name for frame in traceback.extract_tb(task.exception().__traceback__)]


# --- cancellation


@scenario
async def cancelled_at_each_moment(make: Make) -> object:
    async def work() -> str:
        await asyncio.sleep(0)
        await asyncio.sleep(0.001)
        await asyncio.get_running_loop().create_future()
        return "never"

    found: list[object] = []
    for moment in range(4):
        task = make(work())
        for _ in range(moment):
            await asyncio.sleep(0 if moment < 3 else 0.002)
        told = task.cancel("why") if moment else task.cancel()
        found += [told, facts(task), await came_of(task), facts(task), task.cancel()]
    return found


@scenario
async def swallows_cancellations(make: Make) -> object:
    seen: list[object] = []

    async def work() -> str:
        for _ in range(3):
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError as error:
                seen.append(error.args)
        return "went on"

    task = make(work())
    for number in range(3):
        await asyncio.sleep(0)
        task.cancel(number)
        await asyncio.sleep(0)
    return await came_of(task), seen, facts(task)


@scenario
async def cancels_itself(make: Make) -> object:
    loop = asyncio.get_running_loop()
    found: list[object] = []

    async def then_waits(seen: list[object]) -> None:
        task: Any = asyncio.current_task()
        seen.append([task.cancel("one"), task.cancel("two"), task._must_cancel])
        future = loop.create_future()
        try:
            await future
        except asyncio.CancelledError as error:
            seen.append([error.args, future.cancelled(), task._must_cancel])
            raise

    async def then_yields(seen: list[object]) -> str:
        asyncio.current_task().cancel()  # type: ignore[union-attr]
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            seen.append("thrown")
        await asyncio.sleep(0)
        return "went on"

    async def then_returns(_seen: list[object]) -> str:
        asyncio.current_task().cancel("late")  # type: ignore[union-attr]
        return "lost"

    async def then_raises(_seen: list[object]) -> None:
        asyncio.current_task().cancel()  # type: ignore[union-attr]
        raise KeyError("raised")

    async def after(steps: int, what: Any, seen: list[object]) -> object:
        for _ in range(steps):
            await asyncio.sleep(0)
        return await what(seen)

    for what in (then_waits, then_yields, then_returns, then_raises):
        for steps in (0, 1):
            seen: list[object] = []
            task = make(after(steps, what, seen))
            found += [await came_of(task), seen, facts(task)]
    return found


@scenario
async def takes_cancellations_back(make: Make) -> object:
    """Before they are thrown, which means something else from 3.13 on."""

    async def work(steps: int) -> object:
        for _ in range(steps):
            await asyncio.sleep(0)
        task: Any = asyncio.current_task()
        task.cancel()
        task.cancel()
        seen = [task.uncancel(), task._must_cancel, task.uncancel(), task._must_cancel, task.uncancel()]
        for _ in range(2):
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                seen.append("thrown all the same")
        return seen

    return [await came_of(make(work(steps))) for steps in (0, 1)]


@scenario
async def cancelled_while_a_child_refuses(make: Make) -> object:
    async def child() -> str:
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return "child went on"

    async def work() -> object:
        return await asyncio.create_task(child())

    task = make(work())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return task.cancel(), facts(task), await came_of(task), facts(task)


@scenario
async def cancelled_when_its_future_was_done_already(make: Make) -> object:
    future = asyncio.get_running_loop().create_future()

    async def work() -> object:
        return await future

    task = make(work())
    await asyncio.sleep(0)
    future.set_result("lost")
    return task.cancel("too late for the future"), facts(task), await came_of(task)


@scenario
async def a_cancelled_error_of_its_own(make: Make) -> object:
    async def work() -> None:
        await asyncio.sleep(0)
        raise asyncio.CancelledError("of itself", 2)

    task = make(work())
    found = [await came_of(task), await came_of(task), facts(task)]
    with suppress(asyncio.CancelledError):
        task.exception()
    return found


# --- what a coroutine may yield


class Yields:
    """Yields what it is given, once."""

    def __init__(self, *values: object) -> None:
        self.values = values

    def __await__(self) -> Generator[object, object, list[object]]:
        got = []
        for value in self.values:
            got.append((yield value))
        return got


@scenario
async def yields_what_is_no_future(make: Make) -> object:
    loop = asyncio.get_running_loop()
    other = asyncio.new_event_loop()

    foreign = other.create_future()
    foreign._asyncio_future_blocking = True
    values: list[object] = [1, "text", object(), (each for each in ""), loop.create_future(), foreign]

    async def work(steps: int, value: object) -> object:
        for _ in range(steps):
            await asyncio.sleep(0)
        try:
            return await Yields(value)
        except RuntimeError as error:
            await asyncio.sleep(0)
            return said(error)

    found = [await came_of(make(work(steps, value))) for steps in (0, 1) for value in values]
    other.close()
    return found


@scenario
async def awaits_itself(make: Make) -> object:
    async def work(steps: int) -> object:
        for _ in range(steps):
            await asyncio.sleep(0)
        with pytest.raises(RuntimeError) as caught:
            await asyncio.current_task()  # type: ignore[misc]
        return said(caught.value)

    return [await came_of(make(work(steps))) for steps in (0, 1)]


@scenario
async def yields_nothing_many_times(make: Make) -> object:
    return await came_of(make(as_coroutine(Yields(None, None, None))))


async def as_coroutine(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


class Prompt:
    """A future that calls back at once, as those of other libraries do."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._asyncio_future_blocking = False
        self.callbacks: list[tuple[Any, Any]] = []
        self.state = "pending"

    def done(self) -> bool:
        return self.state != "pending"

    def result(self) -> str:
        if self.state == "cancelled":
            raise asyncio.CancelledError
        return self.state

    def add_done_callback(self, callback: Any, *, context: Any = None) -> None:
        self.callbacks.append((callback, context))

    def cancel(self, msg: object = None) -> bool:
        del msg
        return self.finish("cancelled")

    def finish(self, state: str) -> bool:
        if self.done():
            return False
        self.state = state
        for callback, context in self.callbacks:
            context.run(callback, self)
        return True

    def __await__(self) -> Generator[object, None, str]:
        if not self.done():
            self._asyncio_future_blocking = True
            yield self
        return self.result()


@scenario
async def waits_for_a_future_of_another_make(make: Make) -> object:
    loop = asyncio.get_running_loop()
    found = []
    for steps in (0, 1):
        future = Prompt()

        async def work(steps: int, future: Prompt) -> object:
            for _ in range(steps):
                await asyncio.sleep(0)
            return await future

        task = make(work(steps, future))
        loop.call_later(0.001, future.finish, "resolved")
        found.append(await came_of(task))
    return found


class Refuses:
    """A future that one cannot wait for: what is asked of it raises, where asyncio's task would be lost."""

    def __init__(self, where: str, error: BaseException) -> None:
        self.where, self.error = where, error
        self._loop = asyncio.get_running_loop()

    def at(self, where: str) -> None:
        if self.where == where:
            raise self.error

    @property
    def _asyncio_future_blocking(self) -> bool:
        self.at("blocking")
        return True

    @_asyncio_future_blocking.setter
    def _asyncio_future_blocking(self, _: bool) -> None:
        self.at("unblocking")

    def get_loop(self) -> asyncio.AbstractEventLoop:
        self.at("loop")
        return self._loop

    def add_done_callback(self, _callback: Any, *, context: Any = None) -> None:
        del context
        self.at("adding")

    def __await__(self) -> Generator[object, None, None]:
        yield self


@pytest.mark.parametrize("where", ["blocking", "unblocking", "loop", "adding"])
@pytest.mark.parametrize("steps", [0, 1])
@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, AttributeError])
def test_what_cannot_be_waited_for_raises_where_it_is_awaited(
    where: str, steps: int, kind: type[BaseException]
) -> None:
    async def main() -> list[object]:
        refused = kind("refused")

        async def work() -> list[object]:
            seen: list[object] = []
            for _ in range(steps):
                await asyncio.sleep(0)
            for _ in range(300):
                try:
                    await Refuses(where, refused)
                except BaseException as error:
                    seen.append(error is refused or type(error))
            await asyncio.sleep(0.001)
            return [*set(seen), len(seen)]

        task: list[object] = await ours(work())
        return task

    # An attribute that is missing says that it is no future, as it does to asyncio's own task.
    said = {"blocking": RuntimeError}.get(where, True) if kind is AttributeError else True
    if (where, kind) == ("loop", AttributeError):
        pytest.skip("asked inside a method, it is the method's own error")
    assert asyncio.run(main()) == [said, 300]


def test_a_future_that_raises_when_it_is_told_to_cancel_is_waited_for_all_the_same() -> None:
    """As in asyncio's own task: the loop is told, and the cancellation thrown when the future calls."""

    class Stubborn(Prompt):
        def cancel(self, msg: object = None) -> bool:
            raise LookupError(msg)

    async def main(make: Make) -> object:
        loop = asyncio.get_running_loop()
        told: list[object] = []
        loop.set_exception_handler(lambda _loop, context: told.append(repr(context["exception"])))

        async def work(steps: int) -> object:
            for _ in range(steps):
                await asyncio.sleep(0)
            asyncio.current_task().cancel("why")  # type: ignore[union-attr]
            future = Stubborn()
            loop.call_later(0.001, future.finish, "resolved")
            return await future

        return [await came_of(make(work(steps))) for steps in (0, 1)], told

    assert asyncio.run(main(ours)) == asyncio.run(main(plain))


@pytest.mark.parametrize("steps", [0, 1])
def test_a_future_that_calls_back_as_soon_as_it_is_asked_to_goes_on_in_the_loops_next_turn(
    steps: int,
) -> None:
    class Eager(Prompt):
        def add_done_callback(self, callback: Any, *, context: Any = None) -> None:
            del context
            self.state = "resolved"
            callback(self)

    async def main() -> object:
        async def work() -> str:
            for _ in range(steps):
                await asyncio.sleep(0)
            return await Eager()

        return await asyncio.wait_for(ours(work()), 20)

    assert asyncio.run(main()) == "resolved"


@pytest.mark.parametrize("steps", [0, 1])
def test_a_coroutine_that_the_loop_refuses_to_go_on_with_is_closed_and_its_task_ends(steps: int) -> None:
    async def main() -> list[object]:
        loop: Any = asyncio.get_running_loop()
        usual, seen = loop.call_soon, []

        def refuse(callback: Any, *args: Any, **named: Any) -> Any:
            if type(callback).__name__ != "Step":
                return usual(callback, *args, **named)
            loop.call_soon = usual
            raise MemoryError("refused")

        async def work() -> None:
            await asyncio.sleep(0.001 * steps)
            loop.call_soon = refuse
            try:
                await asyncio.sleep(0)
            except GeneratorExit:
                seen.append("closed")
                raise

        return [*seen, await came_of(ours(work())), *seen]

    assert asyncio.run(main()) == ["MemoryError('refused',) after 'None'", "closed"]


@scenario
async def is_called_back_after_its_end(make: Make) -> object:
    loop = asyncio.get_running_loop()
    told: list[object] = []
    loop.set_exception_handler(lambda _loop, context: told.append(said(repr(context["exception"]))))
    waited, over = loop.create_future(), loop.create_future()
    over.set_result(None)

    async def work() -> None:
        await asyncio.sleep(0)
        await waited

    task = make(work())
    while not waited._callbacks:
        await asyncio.sleep(0)
    wakeup: Any = waited._callbacks[0][0]
    waited.set_result(None)
    await task
    told.append(wakeup.__self__ is task)
    for argument in (over, loop.create_future()):
        loop.call_soon(wakeup, argument)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="Cannot enter into task"):
        wakeup(over)
    return told


# --- in a task like any other


@scenario
async def uses_timeouts_and_groups(make: Make) -> object:
    async def work() -> object:
        found: list[object] = []
        try:
            async with asyncio.timeout(0.001):
                await asyncio.sleep(1)
        except TimeoutError:
            found.append("timed out")
        try:
            async with asyncio.timeout(1), asyncio.timeout(0.001):
                await asyncio.sleep(1)
        except TimeoutError:
            found.append("timed out inside")

        async def failing() -> None:
            await asyncio.sleep(0)
            raise ValueError("failed")

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(failing())
                group.create_task(asyncio.sleep(1))
        except* ValueError as errors:
            found.append([str(each) for each in errors.exceptions])
        try:
            await asyncio.wait_for(asyncio.sleep(1), 0.001)
        except TimeoutError:
            found.append("waited for too long")
        task: Any = asyncio.current_task()
        return [*found, task.cancelling(), task._must_cancel]

    return await came_of(make(work()))


@scenario
async def is_waited_for_in_every_way(make: Make) -> object:
    async def work(value: object, error: bool = False) -> object:
        await asyncio.sleep(0)
        if error:
            raise ValueError(value)
        return value

    done, pending = await asyncio.wait({make(work(1)), make(work(2))})
    found: list[object] = [sorted(each.result() for each in done), len(pending)]
    found.append(await asyncio.gather(make(work(3)), make(work(4, True)), return_exceptions=True))
    found.append(await asyncio.shield(make(work(5))))
    found.append(await asyncio.wait_for(make(work(6)), 1))
    found += [await each for each in asyncio.as_completed([make(work(7))])]
    cancelled = make(work(8))
    cancelled.cancel("enough")
    found.append([type(each) for each in await asyncio.gather(cancelled, return_exceptions=True)])
    child = make(work(9))
    found.append(
        [asyncio.isfuture(child), asyncio.ensure_future(child) is child, child in asyncio.all_tasks()]
    )
    found.append(await child)
    found.append(
        [child in asyncio.all_tasks(), isinstance(child, asyncio.Task), child == child, bool(hash(child))]
    )
    return said(found)


@scenario
async def tells_of_itself(make: Make) -> object:
    found: list[object] = []

    async def work() -> None:
        task: Any = asyncio.current_task()
        found.append([frame.f_code.co_name for frame in task.get_stack()][-1])
        found.append(said(repr(task)))
        await asyncio.sleep(0)
        found.append(task is asyncio.current_task())
        await asyncio.get_running_loop().create_future()

    coroutine = work()
    task = make(coroutine, name="named")
    for _ in range(3):
        await asyncio.sleep(0)
    printed = io.StringIO()
    task.print_stack(file=printed)
    found += [
        task.get_coro() is coroutine,
        task._coro is coroutine,
        task.get_name(),
        said(printed.getvalue()),
    ]
    found += [[frame.f_code.co_name for frame in task.get_stack()], len(task.get_stack(limit=1))]
    task.set_name(7)
    found += [task.get_name(), task.get_loop() is asyncio.get_running_loop(), facts(task)]
    for change in (task.set_result, task.set_exception):
        with pytest.raises(RuntimeError) as refused:
            change(None)
        found.append(str(refused.value))
    with pytest.raises(asyncio.InvalidStateError) as refused_too:
        task.result()
    found.append(str(refused_too.value))
    task.cancel()
    found += [await came_of(task), facts(task), task.get_coro() is coroutine, task.get_stack()]
    return found


@scenario
async def calls_back(make: Make) -> object:
    seen: list[object] = []

    async def work() -> str:
        await asyncio.sleep(0)
        variable.set("the task's")
        return "done"

    def first(task: Any) -> None:
        seen.append(["first", task.result(), variable.get()])

    def second(_task: Any) -> None:
        seen.append(["second", variable.get()])

    given = contextvars.copy_context()
    given.run(variable.set, "given")
    task = make(work())
    task.add_done_callback(second)
    task.add_done_callback(first)
    task.add_done_callback(second, context=given)
    removed = task.remove_done_callback(second)
    task.add_done_callback(second, context=given)
    await task
    await asyncio.sleep(0)
    task.add_done_callback(second)
    await asyncio.sleep(0)
    return removed, seen


@scenario
async def keeps_its_context(make: Make) -> object:
    async def work(name: str) -> object:
        seen = [variable.get()]
        token = variable.set(name)
        for pause in (0, 0.001, 0):
            await asyncio.sleep(pause)
            seen.append(variable.get())
            seen.append(await asyncio.create_task(as_coroutine(get())))
            seen.append(await asyncio.to_thread(variable.get))
        variable.reset(token)
        return seen, variable.get()

    async def get() -> str:
        return variable.get()

    variable.set("the parent's")
    return await asyncio.gather(make(work("one")), make(work("two"))), variable.get()


@scenario
async def takes_turns_with_others(make: Make) -> object:
    order: list[str] = []

    async def work(name: str, pauses: int) -> None:
        for _ in range(pauses):
            order.append(name)
            await asyncio.sleep(0)

    await asyncio.gather(make(work("a", 3)), asyncio.create_task(work("b", 3)), make(work("c", 3)))
    return order


@scenario
async def refuses_what_is_no_coroutine(make: Make) -> object:
    with pytest.raises(TypeError) as refused:
        make("a text")
    return str(refused.value)


@pytest.mark.parametrize("name", scenarios)
def test_a_coroutine_comes_to_what_it_would_in_asyncios_own_task(name: str) -> None:
    expected = asyncio.run(as_coroutine(scenarios[name](plain)))
    assert asyncio.run(as_coroutine(scenarios[name](ours))) == expected


# --- what has no equal, or needs a loop of its own


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("steps", [0, 1, 2])
def test_what_ends_the_process_ends_the_task_and_the_loop(kind: type[BaseException], steps: int) -> None:
    made: list[Any] = []

    async def main(make: Make) -> None:
        async def work() -> None:
            for _ in range(steps):
                await asyncio.sleep(0)
            raise kind("now")

        made.append(make(work()))
        await asyncio.sleep(1)

    for make in (plain, ours):
        with pytest.raises(kind):
            asyncio.run(main(make))
    assert [type(task.exception()) for task in made] == [kind, kind]


def test_the_end_of_the_loop_ends_parked_tasks() -> None:
    seen: list[str] = []

    async def work() -> None:
        await asyncio.sleep(0)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            seen.append("ended")

    async def main() -> Any:
        task = ours(work())
        for _ in range(3):
            await asyncio.sleep(0)
        return task

    assert asyncio.run(main()).cancelled()
    assert seen == ["ended"]


def test_nothing_is_left_of_a_task_that_ended_without_the_collector() -> None:
    async def main(failing: bool) -> list[weakref.ref[Any]]:
        async def work() -> None:
            await asyncio.sleep(0)
            await asyncio.sleep(0.001)
            if failing:
                raise ValueError("failed")

        task = ours(work())
        left = [
            weakref.ref(task),
            weakref.ref(task.get_coro()),
            weakref.ref(look_up("coroutine").__get__(task)),
        ]
        with suppress(ValueError):
            await task
        return left

    gc.collect()
    gc.disable()
    try:
        assert [left() for left in asyncio.run(main(failing=False))] == [None] * 3
    finally:
        gc.enable()
    left = asyncio.run(main(failing=True))
    gc.collect()
    assert [each() for each in left] == [None] * 3


def test_futures_that_are_done_already_are_taken_at_once_but_others_have_their_turn() -> None:
    async def main() -> tuple[list[int], int]:
        loop = asyncio.get_running_loop()

        class Done:
            def __await__(self) -> Any:
                future = loop.create_future()
                future.set_result(None)
                future._asyncio_future_blocking = True
                yield future

        turns = 0

        def turn() -> None:
            nonlocal turns
            turns += 1
            loop.call_soon(turn)

        async def work() -> list[int]:
            await asyncio.sleep(0)
            seen = []
            for _ in range(1000):
                await Done()
                seen.append(turns)
            return seen

        loop.call_soon(turn)
        task = ours(work())
        return await task, turns

    seen, turns = asyncio.run(main())
    assert seen.count(seen[0]) > 1
    assert max(map(seen.count, seen)) <= 128
    assert turns >= 1000 // 128


def test_a_failed_future_that_is_done_already_is_thrown() -> None:
    async def main() -> str:
        future = asyncio.get_running_loop().create_future()
        future.set_exception(ValueError("was there"))
        future._asyncio_future_blocking = True

        async def work() -> str:
            await asyncio.sleep(0)
            try:
                await Yields(future)
            except ValueError as error:
                return str(error)
            return "nothing"

        return str(await ours(work()))

    assert asyncio.run(main()) == "was there"


def test_a_future_that_another_task_resolves_at_once_resumes_in_the_loops_next_turn() -> None:
    async def main() -> list[str]:
        order: list[str] = []
        future = Prompt()

        async def waits() -> None:
            await asyncio.sleep(0)
            await future
            order.append("resumed")
            assert asyncio.current_task() is waiting

        async def resolves() -> None:
            await asyncio.sleep(0.001)
            future.finish("resolved")
            order.append("resolved")
            await asyncio.sleep(0)

        waiting = ours(waits())
        await asyncio.gather(waiting, ours(resolves()))
        return order

    assert asyncio.run(main()) == ["resolved", "resumed"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager start came with 3.12")
def test_a_task_that_starts_eagerly_is_the_same_to_its_end() -> None:
    async def main(make: Make) -> object:
        async def work(pauses: int) -> object:
            seen = [asyncio.current_task()]
            for _ in range(pauses):
                await asyncio.sleep(0)
                seen.append(asyncio.current_task())
            return len(set(seen))

        options: dict[str, Any] = {"loop": asyncio.get_running_loop(), "eager_start": True}
        tasks = [make(work(pauses), **options) for pauses in (0, 2)]
        begun = [task.done() for task in tasks]
        return begun, [await task for task in tasks], [facts(task) for task in tasks]

    assert asyncio.run(main(ours)) == asyncio.run(main(plain))


@pytest.mark.parametrize("name", ["coroutine", "waiter", "must_cancel", "enter_task"])
def test_a_name_that_is_gone_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from bridgehead import private_names as names

    place, _ = names.TABLE[name]
    monkeypatch.setitem(names.TABLE, name, (place, "_gone"))
    names.look_up.cache_clear()
    try:
        with pytest.raises(names.MissingNameError, match=f"{place} has no _gone"):
            names.task_names()
    finally:
        names.look_up.cache_clear()
