"""Awaitables made by hand: what `__await__` may yield."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Generator
from typing import Any

from fidelity.account import Seen
from fidelity.registry import case


class Yields:
    """Yields what it is given, one after another."""

    def __init__(self, *values: Any) -> None:
        self.values = values

    def __await__(self) -> Generator[Any, Any, list[Any]]:
        got = []
        for value in self.values:
            got.append((yield value))
        return got


def future() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


def blocking(value: Any) -> Any:
    """A future as `await` hands it to the task."""
    value._asyncio_future_blocking = True
    return value


async def order(seen: Seen, awaitable: Any) -> None:
    """Await, and tell which callbacks came first."""
    asyncio.get_running_loop().call_soon(seen, "callback")
    try:
        seen("got", await awaitable)
    except BaseException as error:
        seen("raised", type(error), str(error).partition("<")[0])
    await asyncio.sleep(0)


@case()
async def none_is_a_turn_of_the_loop(seen: Seen) -> None:
    await order(seen, Yields(None))
    await order(seen, Yields(None, None, None))


@case()
async def none_many_times(seen: Seen) -> None:
    turns = 0

    def turn() -> None:
        nonlocal turns
        turns += 1
        if turns < 1000:
            asyncio.get_running_loop().call_soon(turn)

    turn()
    for _ in range(5):
        await Yields(*[None] * 60)
        seen(turns)
    turns = 1000


@case()
async def nothing_is_no_turn_of_the_loop(seen: Seen) -> None:
    await order(seen, Yields())


@case()
async def a_future_that_is_to_be_waited_for(seen: Seen) -> None:
    waited = future()
    asyncio.get_running_loop().call_soon(waited.set_result, "result")
    await order(seen, Yields(blocking(waited)))


@case(differs_in_rust=True)
async def a_future_that_is_done(seen: Seen) -> None:
    """Handed to the task all the same: a turn of the loop."""
    done = future()
    done.set_result("result")
    await order(seen, Yields(blocking(done)))


@case(differs_in_rust=True)
async def many_futures_that_are_done(seen: Seen) -> None:
    """Each of them is a turn of the loop: others go on meanwhile."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    child = asyncio.create_task(count())
    for _ in range(300):
        done = future()
        done.set_result(None)
        await Yields(blocking(done))
    seen(turns)
    child.cancel()


@case(differs_in_rust=True)
async def a_future_that_is_cancelled(seen: Seen) -> None:
    cancelled = future()
    cancelled.cancel("done with")
    await order(seen, Yields(blocking(cancelled)))


@case(differs_in_rust=True)
async def a_future_that_has_failed(seen: Seen) -> None:
    failed = future()
    failed.set_exception(ValueError("failed"))
    await order(seen, Yields(blocking(failed)))


@case()
async def what_comes_of_futures_that_are_over(seen: Seen) -> None:
    """Whether or not that takes a turn of the loop."""
    over = [future() for _ in range(3)]
    over[0].set_result("result")
    over[1].cancel("done with")
    over[2].set_exception(ValueError("failed"))
    for each in over:
        try:
            seen(await Yields(blocking(each)), each._asyncio_future_blocking)
        except BaseException as error:
            seen(error, each._asyncio_future_blocking)
    for _ in range(500):
        await Yields(blocking(over[0]))
    seen("goes on")


@case()
async def others_go_on_beside_futures_that_are_over(seen: Seen) -> None:
    """However many turns that takes."""
    done, others = future(), 0
    done.set_result(None)

    async def count() -> None:
        nonlocal others
        for _ in range(3):
            others += 1
            await asyncio.sleep(0)

    child = asyncio.create_task(count())
    while others < 3:
        await Yields(blocking(done))
    await child
    seen(others)


@case()
async def a_future_without_yield_from(seen: Seen) -> None:
    await order(seen, Yields(future()))


@case()
async def garbage(seen: Seen) -> None:
    values: tuple[Any, ...] = (5, "text", [], object, 1.5, b"bytes", True, False, (), NotImplemented)
    for value in values:
        try:
            await Yields(value)
        except RuntimeError as error:
            seen(error)


@case()
async def garbage_after_what_is_right(seen: Seen) -> None:
    try:
        await Yields(None, 5, None)
    except RuntimeError as error:
        seen(error)
    await asyncio.sleep(0)
    seen("goes on")


@case()
async def garbage_is_caught_inside(seen: Seen) -> None:
    class Catches:
        def __await__(self) -> Generator[Any, Any, str]:
            try:
                yield "garbage"
            except RuntimeError as error:
                seen(error)
            yield None
            return "went on"

    seen(await Catches())


@case()
async def a_generator_and_a_coroutine_are_garbage(seen: Seen) -> None:
    coroutine = asyncio.sleep(0)
    for value in ((number for number in range(0)), coroutine):
        try:
            await Yields(value)
        except RuntimeError as error:
            seen(type(error), str(error).partition("<")[0])
    coroutine.close()


@case()
async def the_tasks_own_future(seen: Seen) -> None:
    await order(seen, Yields(blocking_task()))


def blocking_task() -> Any:
    return asyncio.current_task()


@case()
async def a_future_of_another_loop(seen: Seen) -> None:
    other = asyncio.new_event_loop()
    try:
        await order(seen, other.create_future())
    finally:
        other.close()


class Duck:
    """A future that is none of asyncio's."""

    def __init__(self, seen: Seen, result: object = "result") -> None:
        self._asyncio_future_blocking = False
        self._loop = asyncio.get_running_loop()
        self._seen = seen
        self._callbacks: list[Any] = []
        self._result = result
        self._done = False

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def add_done_callback(self, callback: Any, *, context: Any = None) -> None:
        self._seen("callback added", context is not None)
        self._callbacks.append((callback, context))

    def remove_done_callback(self, callback: Any) -> int:
        before = len(self._callbacks)
        self._callbacks = [each for each in self._callbacks if each[0] != callback]
        return before - len(self._callbacks)

    def finish(self) -> None:
        self._done = True
        for callback, context in self._callbacks:
            self._loop.call_soon(callback, self, context=context)

    def cancel(self, msg: object = None) -> bool:
        self._seen("cancelled", msg)
        self._result = asyncio.CancelledError(msg)
        self.finish()
        return True

    def cancelled(self) -> bool:
        return isinstance(self._result, asyncio.CancelledError)

    def done(self) -> bool:
        return self._done

    def exception(self) -> object:
        return self._result if isinstance(self._result, BaseException) else None

    def result(self) -> object:
        self._seen("asked")
        if isinstance(self._result, BaseException):
            raise self._result
        return self._result

    def __await__(self) -> Generator[Any, Any, object]:
        if not self._done:
            self._asyncio_future_blocking = True
            yield self
        return self.result()


@case()
async def a_future_that_is_none_of_asyncios(seen: Seen) -> None:
    duck = Duck(seen)
    asyncio.get_running_loop().call_soon(duck.finish)
    seen(await duck, asyncio.isfuture(duck), duck._asyncio_future_blocking)


@case()
async def a_future_that_is_none_of_asyncios_fails(seen: Seen) -> None:
    duck = Duck(seen, ValueError("duck"))
    asyncio.get_running_loop().call_soon(duck.finish)
    try:
        await duck
    except ValueError as error:
        seen(error.args)


@case()
async def a_future_that_is_none_of_asyncios_is_cancelled(seen: Seen) -> None:
    task = asyncio.current_task()
    assert task is not None
    duck = Duck(seen)
    asyncio.get_running_loop().call_soon(task.cancel, "through the task")
    try:
        await duck
    except asyncio.CancelledError as error:
        seen(error.args, task.uncancel())


class Forwards:
    """A future that hands its callbacks to the one inside: the task is called back with that."""

    def __init__(self, inner: asyncio.Future[Any]) -> None:
        self._asyncio_future_blocking = False
        self.inner = inner

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self.inner.get_loop()

    def add_done_callback(self, callback: Any, *, context: Any = None) -> None:
        self.inner.add_done_callback(callback, context=context)

    def cancel(self, *given: object, **named: object) -> bool:
        return self.inner.cancel(*given, **named)

    def __await__(self) -> Generator[Any, Any, Any]:
        self._asyncio_future_blocking = True
        yield self
        return self.inner.result()


@case()
async def a_future_that_hands_its_callbacks_to_another(seen: Seen) -> None:
    """It has no `done`, either, and no `result`."""
    resolved, failed = future(), future()
    asyncio.get_running_loop().call_soon(resolved.set_result, "result")
    seen(await Forwards(resolved))
    asyncio.get_running_loop().call_soon(failed.set_exception, ValueError("failed"))
    try:
        await Forwards(failed)
    except ValueError as error:
        seen(error.args)


@case()
async def a_future_that_hands_its_callbacks_to_another_is_cancelled(seen: Seen) -> None:
    task = asyncio.current_task()
    assert task is not None
    for cancel in (task.cancel, lambda: task.cancel("why")):
        inner = future()
        asyncio.get_running_loop().call_soon(cancel)
        try:
            await Forwards(inner)
        except asyncio.CancelledError as error:
            seen(error.args, inner.cancelled(), task.uncancel())
    task.cancel("itself")
    try:
        await Forwards(future())
    except asyncio.CancelledError as error:
        seen(error.args, task.uncancel())
    try:
        async with asyncio.timeout(0.01):
            await Forwards(future())
    except TimeoutError:
        seen("timed out", task.cancelling())


@case()
async def a_future_whose_done_raises(seen: Seen) -> None:
    class Asked(Forwards):
        def done(self) -> bool:
            seen("done")
            raise AttributeError("of done")

    resolved = future()
    asyncio.get_running_loop().call_soon(resolved.set_result, "result")
    seen(await Asked(resolved))


@case()
async def how_the_future_is_told_to_cancel(seen: Seen) -> None:
    class Told(Forwards):
        def cancel(self, *given: object, **named: object) -> bool:
            seen("cancel", list(given), list(named))
            return super().cancel(*given, **named)

    task = asyncio.current_task()
    assert task is not None
    for message in ((), (None,), ("why",)):
        asyncio.get_running_loop().call_soon(task.cancel, *message)
        try:
            await Told(future())
        except asyncio.CancelledError as error:
            seen(error.args, task.uncancel())
        task.cancel(*message)
        try:
            await Told(future())
        except asyncio.CancelledError as error:
            seen(error.args, task.uncancel())


@case()
async def the_callback_of_a_wait_is_called_by_hand(seen: Seen) -> None:
    """With any future, whatever the task waits for by then."""
    loop = asyncio.get_running_loop()
    first, second, over, failed = future(), future(), future(), future()
    over.set_result(None)
    failed.set_exception(ValueError("failed"))
    wakeups: list[Any] = []

    def call(waited: Any, given: asyncio.Future[Any]) -> None:
        wakeups.append(waited._callbacks[0][0])
        wakeups[-1](given)

    for waited, given in ((first, over), (second, failed)):
        loop.call_soon(call, waited, given)
        try:
            seen(await Yields(blocking(waited)), waited.done())
        except ValueError as error:
            seen(error.args, waited.done())
    wakeup, other = wakeups
    seen(wakeup == other, hash(wakeup) == hash(other), len({wakeup, other}), wakeup == call)
    seen(second.remove_done_callback(wakeup), second.remove_done_callback(wakeup))
    seen(wakeup.__name__, wakeup.__qualname__, wakeup.__self__ is asyncio.current_task(), repr(wakeup))
    try:
        wakeup(over)
    except RuntimeError as error:
        seen(str(error).partition("<")[0])
    # The loop's own step comes after it.
    loop.call_soon(wakeup, over)
    await asyncio.sleep(0)
    loop.call_soon(seen, "a callback")
    seen(await Yields(blocking(future())))
    # What was waited for first calls late; a future of asyncio's is waited for all the same.
    loop.call_soon(first.set_result, None)
    seen(await Yields(blocking(future())))
    third = future()
    loop.call_soon(wakeup, over)
    loop.call_later(0.01, third.set_result, "third")
    seen(await third)
    loop.call_soon(wakeup, failed)
    try:
        await future()
    except ValueError as error:
        seen(error.args)
    await asyncio.sleep(0.01)


@case(alone=True)
async def a_callback_that_comes_after_the_end(seen: Seen) -> None:
    loop = asyncio.get_running_loop()
    waited, over = future(), future()
    over.set_result(None)

    async def work() -> None:
        await waited

    child = loop.create_task(work())
    await asyncio.sleep(0)
    wakeup = waited._callbacks[0][0]
    waited.set_result(None)
    await child
    told: list[Any] = []
    loop.set_exception_handler(lambda _loop, context: told.append(context["exception"]))
    loop.call_soon(wakeup, over)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    loop.set_exception_handler(None)
    seen([type(each) for each in told], [str(each).partition("<")[0] for each in told])


@case()
async def what_is_sent_in(seen: Seen) -> None:
    waited = future()
    asyncio.get_running_loop().call_soon(waited.set_result, "result")
    seen(await Yields(None, blocking(waited), None))


@case()
async def an_iterator_that_is_no_generator(seen: Seen) -> None:
    class Iterates:
        def __init__(self) -> None:
            self.left = 3

        def __await__(self) -> Any:
            return self

        def __iter__(self) -> Any:
            return self

        def __next__(self) -> None:
            if not self.left:
                raise StopIteration("value")
            self.left -= 1

    await order(seen, Iterates())


@case()
async def an_iterator_is_cancelled(seen: Seen) -> None:
    """It has no `throw`: the exception appears at the `await`."""

    class Iterates:
        def __await__(self) -> Any:
            return self

        def __next__(self) -> None:
            return None

        def __iter__(self) -> Any:
            return self

    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().call_soon(task.cancel, "stop")
    try:
        await Iterates()
    except asyncio.CancelledError as error:
        seen(error.args, task.uncancel())


@case()
async def a_generator_that_swallows_the_cancellation(seen: Seen) -> None:
    class Swallows:
        def __await__(self) -> Generator[Any, Any, str]:
            try:
                while True:
                    yield None
            except asyncio.CancelledError as error:
                seen(error.args)
            yield None
            return "swallowed"

    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().call_soon(task.cancel, "stop")
    seen(await Swallows(), task.uncancel())


@case()
async def await_returns_no_iterator(seen: Seen) -> None:
    class Wrong:
        def __await__(self) -> Any:
            return 5

    class Coroutine:
        def __await__(self) -> Any:
            return coroutine

    coroutine = asyncio.sleep(0)
    for awaitable in (Wrong(), Coroutine()):
        try:
            await awaitable
        except TypeError as error:
            seen(error)
    coroutine.close()


@case()
async def a_generator_based_coroutine(seen: Seen) -> None:
    @types.coroutine
    def old() -> Generator[Any, Any, str]:
        yield
        yield from asyncio.sleep(0).__await__()
        return "old"

    await order(seen, old())
    seen(await asyncio.create_task(old()))


@case()
async def awaitables_that_are_no_coroutines_become_tasks(seen: Seen) -> None:
    seen(await asyncio.ensure_future(Yields(None)), await asyncio.gather(Yields(None, None), Yields()))
    try:
        seen(asyncio.create_task(Yields(None)))  # type: ignore[arg-type]
    except TypeError as error:
        seen(type(error), str(error).partition("<")[0])


@case()
async def a_future_is_waited_for_by_the_handler_twice(seen: Seen) -> None:
    waited = future()

    async def again() -> Any:
        return await waited

    asyncio.get_running_loop().call_soon(waited.set_result, "result")
    seen(await asyncio.gather(waited, again(), again()))


@case()
async def a_subclass_of_future(seen: Seen) -> None:
    class Ours(asyncio.Future[str]):
        def add_done_callback(self, callback: Any, *, context: Any = None) -> None:
            seen("added")
            super().add_done_callback(callback, context=context)

    ours = Ours(loop=asyncio.get_running_loop())
    asyncio.get_running_loop().call_soon(ours.set_result, "ours")
    seen(await ours)


@case()
async def pythons_own_future(seen: Seen) -> None:
    """The one written in Python."""
    from asyncio import futures

    slow: Any = futures._PyFuture(loop=asyncio.get_running_loop())  # type: ignore[attr-defined]
    asyncio.get_running_loop().call_soon(slow.set_result, "slow")
    seen(await slow)


@case()
async def pythons_own_task(seen: Seen) -> None:
    from asyncio import tasks

    async def work() -> str:
        await asyncio.sleep(0)
        return "slow"

    seen(await tasks._PyTask(work(), loop=asyncio.get_running_loop()))  # type: ignore[attr-defined]
