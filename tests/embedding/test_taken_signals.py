"""Handlers of several servers for one signal: given back in whatever order, they end where they began."""

from __future__ import annotations

import signal
from itertools import permutations
from types import FrameType
from typing import TYPE_CHECKING

import pytest
from harness import UVICORN

from bridgehead.taken_signals import Taken

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(UVICORN, reason="these are Bridgehead's own")

NUMBER = signal.SIGUSR2


class Owner:
    def handle(self, number: int, frame: FrameType | None) -> None:
        pass


@pytest.fixture
def before() -> Iterator[object]:
    ours = Owner().handle
    former = signal.signal(NUMBER, ours)
    yield ours
    signal.signal(NUMBER, former)


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_in_any_order_the_last_who_is_left_has_the_signal(order: tuple[int, ...], before: object) -> None:
    handlers = [Owner().handle for _ in range(3)]
    taken = [Taken([NUMBER], each) for each in handlers]
    left = [0, 1, 2]
    for each in order:
        assert signal.getsignal(NUMBER) is handlers[left[-1]]
        taken[each].give_back()
        left.remove(each)
    assert signal.getsignal(NUMBER) is before


def test_one_function_for_two_servers_stays_for_the_second(before: object) -> None:
    shared = Owner().handle
    first, second = Taken([NUMBER], shared), Taken([NUMBER], shared)
    first.give_back()
    assert signal.getsignal(NUMBER) is shared
    second.give_back()
    assert signal.getsignal(NUMBER) is before


@pytest.mark.usefixtures("before")
def test_a_handler_that_was_set_between_two_servers_comes_back() -> None:
    first = Taken([NUMBER], Owner().handle)
    between = Owner().handle
    signal.signal(NUMBER, between)
    second = Taken([NUMBER], Owner().handle)
    first.give_back()
    second.give_back()
    assert signal.getsignal(NUMBER) is between
