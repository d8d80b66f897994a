"""Event, Lock, Semaphore, Condition, Barrier, and the queues."""

from __future__ import annotations

import asyncio
from typing import Any

from fidelity.account import Seen
from fidelity.registry import case


@case()
async def an_event_wakes_everybody_in_order(seen: Seen) -> None:
    event = asyncio.Event()

    async def wait(name: str) -> None:
        seen(name, await event.wait())

    children = [asyncio.create_task(wait(name)) for name in "abc"]
    await asyncio.sleep(0)
    seen(event.is_set())
    event.set()
    seen(await event.wait())
    await asyncio.gather(*children)
    event.clear()
    seen(event.is_set())


@case()
async def the_handler_waits_for_an_event_of_a_callback(seen: Seen) -> None:
    event = asyncio.Event()
    asyncio.get_running_loop().call_soon(event.set)
    seen(await event.wait(), repr(event))


@case()
async def the_handler_waits_for_an_event_of_another_request(seen: Seen) -> None:
    event = asyncio.Event()

    async def set_it() -> None:
        event.set()

    errand = asyncio.create_task(seen.world.elsewhere(set_it))
    seen(await event.wait())
    await errand


@case()
async def a_lock_is_handed_on_in_order(seen: Seen) -> None:
    lock = asyncio.Lock()

    async def work(name: str) -> None:
        async with lock:
            seen(name, "in")
            await asyncio.sleep(0)
            seen(name, "out")

    await lock.acquire()
    children = [asyncio.create_task(work(name)) for name in "abc"]
    await asyncio.sleep(0)
    seen(lock.locked(), repr(lock))
    lock.release()
    await work("handler")
    await asyncio.gather(*children)
    seen(lock.locked())


@case()
async def a_cancelled_waiter_does_not_get_the_lock(seen: Seen) -> None:
    lock = asyncio.Lock()
    await lock.acquire()

    async def work(name: str) -> None:
        async with lock:
            seen(name)

    first, second = asyncio.create_task(work("first")), asyncio.create_task(work("second"))
    await asyncio.sleep(0)
    first.cancel()
    lock.release()
    await asyncio.wait([first, second])
    seen(first.cancelled(), lock.locked())


@case()
async def the_handler_is_cancelled_while_it_waits_for_a_lock(seen: Seen) -> None:
    lock = asyncio.Lock()
    task = asyncio.current_task()
    assert task is not None
    await lock.acquire()
    asyncio.get_running_loop().call_soon(task.cancel)
    try:
        await lock.acquire()
    except asyncio.CancelledError:
        seen(task.uncancel(), lock.locked())
    lock.release()
    async with lock:
        seen("have it")


@case()
async def releasing_what_is_not_held(seen: Seen) -> None:
    for what in (asyncio.Lock(), asyncio.BoundedSemaphore(1)):
        try:
            what.release()
        except (RuntimeError, ValueError) as error:
            seen(error)


@case()
async def a_semaphore_lets_two_in(seen: Seen) -> None:
    semaphore = asyncio.Semaphore(2)
    inside = most = 0

    async def work() -> None:
        nonlocal inside, most
        async with semaphore:
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(work() for _ in range(10)))
    seen(most, semaphore.locked(), repr(semaphore))


@case()
async def a_semaphore_is_fair(seen: Seen) -> None:
    semaphore = asyncio.Semaphore(1)

    async def work(name: str) -> None:
        for _ in range(2):
            async with semaphore:
                seen(name)
                await asyncio.sleep(0)

    await asyncio.gather(*(work(name) for name in "abc"))


@case()
async def a_semaphore_with_cancelled_waiters(seen: Seen) -> None:
    semaphore = asyncio.Semaphore(0)
    waiters = [asyncio.create_task(semaphore.acquire()) for _ in range(4)]
    await asyncio.sleep(0)
    waiters[0].cancel()
    waiters[2].cancel()
    semaphore.release()
    semaphore.release()
    await asyncio.wait(waiters, timeout=5)
    seen([waiter.cancelled() for waiter in waiters], semaphore.locked())


@case()
async def a_condition_notifies(seen: Seen) -> None:
    condition = asyncio.Condition()
    ready = 0

    async def wait(name: str) -> None:
        async with condition:
            await condition.wait_for(lambda: ready > 0)
            seen(name)

    children = [asyncio.create_task(wait(name)) for name in "abc"]
    await asyncio.sleep(0)
    async with condition:
        condition.notify_all()
    await asyncio.sleep(0)
    seen("not ready")
    ready = 1
    async with condition:
        condition.notify(2)
        condition.notify()
    await asyncio.gather(*children)


@case()
async def a_condition_without_its_lock(seen: Seen) -> None:
    condition = asyncio.Condition()
    for refused in (condition.notify, condition.notify_all):
        try:
            refused()
        except RuntimeError as error:
            seen(error)
    try:
        await condition.wait()
    except RuntimeError as error:
        seen(error)


@case()
async def a_cancelled_condition_has_its_lock_again(seen: Seen) -> None:
    condition = asyncio.Condition()
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().call_soon(task.cancel)
    async with condition:
        try:
            await condition.wait()
        except asyncio.CancelledError:
            seen(condition.locked(), task.uncancel())
    seen(condition.locked())


@case()
async def a_barrier_lets_all_through_at_once(seen: Seen) -> None:
    barrier = asyncio.Barrier(3)

    async def meet(name: str) -> None:
        seen(name, await barrier.wait())

    await asyncio.gather(*(meet(name) for name in "abc"))
    seen(barrier.n_waiting, barrier.broken, barrier.parties)
    async with asyncio.timeout(5):
        children = [asyncio.create_task(barrier.wait()) for _ in range(2)]
        async with barrier as position:
            seen("handler", position)
        await asyncio.gather(*children)


@case()
async def a_broken_barrier(seen: Seen) -> None:
    barrier = asyncio.Barrier(3)

    async def meet(name: str) -> None:
        try:
            await barrier.wait()
        except asyncio.BrokenBarrierError as error:
            seen(name, type(error), str(error))

    children = [asyncio.create_task(meet(name)) for name in "ab"]
    await asyncio.sleep(0)
    await barrier.abort()
    await asyncio.gather(*children)
    seen(barrier.broken)
    await barrier.reset()
    seen(barrier.broken)


@case()
async def a_queue_holds_the_producer_up(seen: Seen) -> None:
    queue: asyncio.Queue[int] = asyncio.Queue(maxsize=2)

    async def produce() -> None:
        for number in range(6):
            await queue.put(number)
            seen("put", number)

    child = asyncio.create_task(produce())
    for _ in range(6):
        seen("got", await queue.get())
        queue.task_done()
    await child
    await queue.join()
    seen(queue.qsize(), queue.empty(), queue.full())


@case()
async def a_queue_without_waiting(seen: Seen) -> None:
    queue: asyncio.Queue[int] = asyncio.Queue(maxsize=1)
    try:
        queue.get_nowait()
    except asyncio.QueueEmpty as error:
        seen(error)
    queue.put_nowait(1)
    try:
        queue.put_nowait(2)
    except asyncio.QueueFull as error:
        seen(error)
    queue.task_done()
    try:
        queue.task_done()
    except ValueError as error:
        seen(error)


@case()
async def queues_with_an_order(seen: Seen) -> None:
    queues: list[asyncio.Queue[Any]] = [asyncio.PriorityQueue(), asyncio.LifoQueue()]
    for queue in queues:
        for number in (3, 1, 2):
            await queue.put(number)
        seen([await queue.get() for _ in range(3)])


@case()
async def a_cancelled_getter_loses_nothing(seen: Seen) -> None:
    queue: asyncio.Queue[int] = asyncio.Queue()
    getters = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    getters[0].cancel()
    for number in range(2):
        queue.put_nowait(number)
    await asyncio.wait(getters)
    seen([None if getter.cancelled() else getter.result() for getter in getters])


@case()
async def the_handler_waits_for_a_queue_with_a_timeout(seen: Seen) -> None:
    queue: asyncio.Queue[int] = asyncio.Queue()
    try:
        await asyncio.wait_for(queue.get(), 0.01)
    except TimeoutError:
        seen("empty", repr(queue))
    queue.put_nowait(1)
    seen(await asyncio.wait_for(queue.get(), 5))


@case(since=(3, 13))
async def a_queue_is_shut_down(seen: Seen) -> None:
    queue: Any = asyncio.Queue()
    getter = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.shutdown()
    for awaitable in (getter, queue.put(1)):
        try:
            await awaitable
        except Exception as error:
            seen(type(error), str(error))


@case()
async def many_producers_and_consumers(seen: Seen) -> None:
    queue: asyncio.Queue[int | None] = asyncio.Queue(maxsize=3)
    total = 0

    async def produce(first: int) -> None:
        for number in range(first, first + 50):
            await queue.put(number)

    async def consume() -> None:
        nonlocal total
        while (number := await queue.get()) is not None:
            total += number

    consumers = [asyncio.create_task(consume()) for _ in range(4)]
    await asyncio.gather(*(produce(50 * number) for number in range(4)))
    for _ in consumers:
        await queue.put(None)
    await asyncio.gather(*consumers)
    seen(total)


@case()
async def what_is_made_in_one_request_is_used_in_another(seen: Seen) -> None:
    queue: asyncio.Queue[str] = asyncio.Queue()
    lock = asyncio.Lock()

    async def use() -> None:
        async with lock:
            await queue.put("from another request")

    async with lock:
        errand = asyncio.create_task(seen.world.elsewhere(use))
        await asyncio.sleep(0.01)
        seen(queue.qsize())
    seen(await queue.get())
    await errand
