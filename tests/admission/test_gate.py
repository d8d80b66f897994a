"""`bridgehead.admission`: who comes in, who waits, who is turned away."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any

import pytest
from harness import UVICORN, uvloop_is_installed

from bridgehead.admission import (
    Gate,
    NotAdmitted,
    QueueFull,
    WaitedTooLong,
    contention,
    named,
    table,
)
from bridgehead.gate_waiters import Waiter

pytestmark = pytest.mark.skipif(UVICORN, reason="uvicorn has nothing of the kind")

Main = Coroutine[Any, Any, None]


def on_asyncio(main: Main) -> None:
    asyncio.run(main)


def on_uvloop(main: Main) -> None:
    if not uvloop_is_installed():
        main.close()
        pytest.skip("uvloop is not installed")
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


@pytest.fixture(params=[on_asyncio, on_uvloop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Main], None]:
    chosen: Callable[[Main], None] = request.param
    return chosen


async def settle() -> None:
    """Let every task go as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_no_more_are_inside_than_there_are_slots_and_who_waits_comes_in_turn(run: Any) -> None:
    async def main() -> None:
        gate, inside, most, order = Gate(3), 0, 0, list[int]()

        async def enter(number: int) -> None:
            nonlocal inside, most
            async with gate:
                order.append(number)
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0)
                inside -= 1

        await asyncio.gather(*(enter(number) for number in range(50)))
        assert (most, inside) == (3, 0)
        assert order == sorted(order)
        gauges = gate.gauges()
        assert (gauges.running, gauges.waiting, gauges.admitted) == (0, 0, 50)
        assert gauges.most_waiting == 47

    run(main())


def test_nobody_overtakes_who_was_told_and_has_not_come_yet(run: Any) -> None:
    async def main() -> None:
        gate, order = Gate(1), list[str]()

        async def enter(name: str) -> None:
            async with gate:
                order.append(name)

        await gate.acquire()
        first = asyncio.create_task(enter("first"))
        await settle()
        gate.release()
        # The slot is the first one's from this moment, though its task has not run yet.
        await enter("second")
        await first
        assert order == ["first", "second"]

    run(main())


def test_a_full_queue_turns_away_at_once_and_is_counted(run: Any) -> None:
    async def main() -> None:
        gate = Gate(1, queue=1)
        async with gate:
            waits = asyncio.create_task(gate.acquire())
            await settle()
            with pytest.raises(QueueFull):
                await gate.acquire()
        await waits
        gate.release()
        assert (gate.gauges().full, gate.gauges().running) == (1, 0)

    run(main())


def test_who_waits_for_too_long_is_turned_away_and_leaves_the_queue(run: Any) -> None:
    async def main() -> None:
        gate = Gate(1, patience=0.02)
        async with gate:
            with pytest.raises(WaitedTooLong) as raised:
                await gate.acquire()
            assert isinstance(raised.value, NotAdmitted)
            assert gate.gauges().waiting == 0
        async with gate:
            pass
        assert gate.gauges().late == 1

    run(main())


async def wait_while_the_loop_is_held(slots: Gate | asyncio.Semaphore, wait: Callable[[], Main]) -> None:
    """Whoever waits so is late by the clock when the slot comes, of which the loop knows nothing yet."""
    await slots.acquire()
    waits = asyncio.create_task(wait())
    # Once: it waits, and nothing that is due has been looked at since.
    await asyncio.sleep(0)
    late = time.monotonic() + 0.01
    while time.monotonic() < late:
        pass
    slots.release()
    await waits
    slots.release()


def test_a_slot_that_comes_before_the_loop_has_seen_that_it_is_late_is_taken(run: Any) -> None:
    gate = Gate(1, patience=0.001)
    run(wait_while_the_loop_is_held(gate, gate.acquire))
    assert (gate.gauges().late, gate.gauges().admitted, gate.gauges().running) == (0, 2, 0)


def test_so_it_is_with_asyncios_own_semaphore_and_timeout() -> None:
    async def main() -> None:
        slots = asyncio.Semaphore(1)

        async def wait() -> None:
            async with asyncio.timeout(0.001):
                await slots.acquire()

        await wait_while_the_loop_is_held(slots, wait)

    asyncio.run(main())


def test_a_cancelled_waiter_leaves_the_queue_and_one_that_was_told_passes_it_on(run: Any) -> None:
    async def main() -> None:
        gate = Gate(1)
        await gate.acquire()
        tasks = [asyncio.create_task(gate.acquire()) for _ in range(3)]
        await settle()
        tasks[0].cancel()
        await settle()
        assert gate.gauges().waiting == 2
        gate.release()
        # It has the slot, and has not run since: the next one gets it.
        tasks[1].cancel()
        await tasks[2]
        assert tasks[1].cancelled()
        assert (gate.gauges().running, gate.gauges().waiting) == (1, 0)
        gate.release()

    run(main())


def test_who_has_waited_in_vain_is_in_the_percentiles_and_who_found_it_full_is_not(run: Any) -> None:
    async def main() -> None:
        late, left = Gate(1, patience=0.02), Gate(1, queue=1)
        async with late, left:
            with pytest.raises(WaitedTooLong):
                await late.acquire()
            waits = asyncio.create_task(left.acquire())
            await settle()
            for _ in range(10):
                with pytest.raises(QueueFull):
                    await left.acquire()
            waits.cancel()
            await asyncio.wait({waits})
        # Who was inside had not waited at all.
        for gauges in (late.gauges(), left.gauges()):
            assert gauges.admitted == 1
            assert 0 < gauges.p50 == gauges.p99 == gauges.longest
        assert (late.gauges().late, late.gauges().left) == (1, 0)
        assert (left.gauges().left, left.gauges().full, left.gauges().late) == (1, 10, 0)

    run(main())


def test_work_that_fails_gives_its_slot_back(run: Any) -> None:
    async def main() -> None:
        gate = Gate(1)
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                async with gate:
                    raise ZeroDivisionError
        assert gate.gauges().running == 0
        with pytest.raises(RuntimeError, match="nobody is inside"):
            gate.release()

    run(main())


def test_a_slot_that_another_thread_gives_back_wakes_who_waits(run: Any) -> None:
    async def main() -> None:
        gate = Gate(1)
        await gate.acquire()
        waits = asyncio.create_task(gate.acquire())
        await settle()
        thread = threading.Thread(target=gate.release)
        thread.start()
        await waits
        thread.join()
        gate.release()

    run(main())


Loop = asyncio.AbstractEventLoop


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def closing(request: pytest.FixtureRequest) -> Iterator[Loop]:
    """A loop that the test closes while somebody waits there, whom nothing else ends meanwhile."""
    if request.param:
        uvloop = pytest.importorskip("uvloop")
        loop: Loop = uvloop.new_event_loop()
    else:
        loop = asyncio.new_event_loop()
    gc.disable()
    yield loop
    gc.enable()


def wait_there(loop: Loop, gate: Gate, many: int) -> list[asyncio.Task[None]]:
    tasks = [loop.create_task(gate.acquire()) for _ in range(many)]
    loop.run_until_complete(settle())
    for task in tasks:
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    return tasks


def enter_soon(gate: Gate) -> None:
    """There is a slot without a wait."""

    async def enter() -> None:
        async with asyncio.timeout(10), gate:
            pass

    asyncio.run(enter())


def test_a_slot_that_is_handed_to_who_waits_on_a_closed_loop_is_the_next_one_s(closing: Loop) -> None:
    gate = Gate(1, queue=2000)
    closing.run_until_complete(gate.acquire())
    tasks = wait_there(closing, gate, 2000)
    closing.close()
    # From one to the next of them, of whom there are more than calls may be within each other.
    gate.release()
    assert (gate.gauges().running, gate.gauges().waiting) == (0, 0)
    # For how long they had waited nobody knows.
    assert (gate.gauges().left, gate.gauges().longest) == (2000, 0)
    enter_soon(gate)
    assert not any(task.done() for task in tasks)


def test_a_slot_that_was_handed_just_before_its_loop_was_closed_is_the_next_one_s(closing: Loop) -> None:
    gate = Gate(1)
    closing.run_until_complete(gate.acquire())
    tasks = wait_there(closing, gate, 1)
    gate.release()
    closing.close()
    enter_soon(gate)
    assert not tasks[0].done()


def test_who_waits_already_has_the_slot_of_a_loop_that_is_closed_before_it_would_be_late(
    closing: Loop,
) -> None:
    gate = Gate(1, patience=0.05)
    closing.run_until_complete(gate.acquire())
    tasks = wait_there(closing, gate, 1)

    async def main() -> None:
        waits = asyncio.create_task(gate.acquire())
        await settle()
        gate.release()
        closing.close()
        await waits

    asyncio.run(main())
    assert not tasks[0].done()
    assert (gate.gauges().running, gate.gauges().late) == (1, 0)


def test_who_waits_on_a_closed_loop_takes_no_place_in_the_queue(closing: Loop) -> None:
    gate = Gate(1, queue=1)
    closing.run_until_complete(gate.acquire())
    tasks = wait_there(closing, gate, 1)
    closing.close()

    async def main() -> None:
        waits = asyncio.create_task(gate.acquire())
        await settle()
        gate.release()
        await waits

    asyncio.run(main())
    assert not tasks[0].done()


def test_threads_with_loops_of_their_own_share_the_slots_of_a_gate() -> None:
    gate, inside, most, lock = Gate(2), 0, 0, threading.Lock()

    async def main() -> None:
        nonlocal inside, most
        for _ in range(200):
            async with gate:
                with lock:
                    inside += 1
                    most = max(most, inside)
                await asyncio.sleep(0)
                with lock:
                    inside -= 1

    async def crowd() -> None:
        await asyncio.gather(main(), main())

    threads = [threading.Thread(target=asyncio.run, args=(crowd(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most <= 2
    assert (gate.gauges().running, gate.gauges().admitted) == (0, 1200)


def test_a_decorated_function_and_a_decorated_dependency_are_limited(run: Any) -> None:
    gate, closed = Gate(1), list[str]()

    @gate.limits
    async def query(number: int) -> int:
        """Ask."""
        assert gate.gauges().running == 1
        return number + 1

    @gate.limits
    async def session() -> AsyncIterator[str]:
        try:
            yield "session"
        except ZeroDivisionError:
            closed.append("rolled back")
            raise

    async def main() -> None:
        assert await query(1) == 2
        assert (query.__name__, query.__doc__) == ("query", "Ask.")
        sessions = session()
        assert await anext(sessions) == "session"
        assert gate.gauges().running == 1
        with pytest.raises(ZeroDivisionError):
            await sessions.athrow(ZeroDivisionError())  # type: ignore[attr-defined]
        assert gate.gauges().running == 0
        assert closed == ["rolled back"]

    run(main())
    with pytest.raises(TypeError, match="`async def` only"):
        gate.limits(len)


def test_objects_that_are_called_like_them_are_limited_as_well(run: Any) -> None:
    gate = Gate(1)

    class Query:
        async def __call__(self, number: int) -> int:
            assert gate.gauges().running == 1
            return number + 1

    class Session:
        async def __call__(self) -> AsyncIterator[str]:
            yield "session"

    async def main() -> None:
        query, session = gate.limits(Query()), gate.limits(Session())
        assert await query(1) == 2
        assert list(inspect.signature(query).parameters) == ["number"]
        async for each in session():
            assert (each, gate.gauges().running) == ("session", 1)
        assert gate.gauges().running == 0

    run(main())


def test_a_gate_with_a_name_is_listed_as_long_as_it_lives() -> None:
    database = Gate(5, name="database")
    assert named()["database"].slots == database.slots == 5
    del database
    gc.collect()
    assert "database" not in named()


def test_gates_of_one_name_are_told_apart_by_the_order_in_which_they_were_made() -> None:
    # The last has the name that the second would have been given.
    gates = [Gate(1, name="twice"), Gate(2, name="twice"), Gate(3, name="twice"), Gate(4, name="twice (2)")]
    slots = {name: each.slots for name, each in named().items() if name.startswith("twice")}
    assert slots == {"twice": 1, "twice (2)": 2, "twice (3)": 3, "twice (2) (2)": 4}
    del gates[0]
    gc.collect()
    assert named()["twice"].slots == 2


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"slots": 0}, "a gate has a slot at least"),
        ({"slots": -1}, "a gate has a slot at least"),
        ({"slots": 10**30}, "less than"),
        ({"slots": 1, "queue": -1}, "may wait"),
        ({"slots": 1, "queue": 10**30}, "less than"),
        ({"slots": 1, "patience": -1.0}, "a time in seconds"),
        ({"slots": 1, "patience": float("nan")}, "a time in seconds"),
    ],
)
def test_a_gate_of_impossible_numbers_is_not_made(settings: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        Gate(**settings)


@pytest.mark.parametrize("patience", [None, float("inf"), 1e300])
def test_a_patience_without_end_waits_until_a_slot_is_there(run: Any, patience: float | None) -> None:
    async def main() -> None:
        gate = Gate(1, patience=patience)
        await gate.acquire()
        waits = asyncio.create_task(gate.acquire())
        await settle()
        assert gate.gauges().waiting == 1
        gate.release()
        await waits
        gate.release()

    run(main())


def test_contention_shows_that_fewer_slots_make_longer_waits() -> None:
    async def work() -> None:
        await asyncio.sleep(0.002)

    async def main() -> None:
        narrow, wide = await contention(work, slots=(1, 20), callers=20, entries=60)
        assert (narrow.admitted, wide.admitted) == (60, 60)
        assert narrow.most_waiting == 19
        assert wide.longest == 0
        assert 0 < narrow.p50 <= narrow.p99 <= narrow.longest
        assert [line.split()[0] for line in table([narrow, wide]).splitlines()] == ["slots", "1", "20"]

    asyncio.run(main())


def test_waiters_that_come_and_go_leave_nothing_behind() -> None:
    async def main() -> None:
        gate = Gate(1)
        await gate.acquire()
        for _ in range(200):
            with suppress(TimeoutError):
                async with asyncio.timeout(0):
                    await gate.acquire()
        await settle()
        gc.collect()
        assert not [each for each in gc.get_objects() if isinstance(each, Waiter)]
        assert gate.gauges().waiting == 0

    asyncio.run(main())
