"""How sure `--compare` may be of what it shows: by simulated seconds, with a fixed seed."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from bridgehead.load import student
from bridgehead.load.changes import Sample, errors, latencies, rates
from bridgehead.load.report import Row

_PAIRS = 300


@pytest.mark.parametrize(
    ("freedom", "confidence", "due"),
    # Of the tables of any book.
    [
        (1, 0.95, 12.7062),
        (4, 0.95, 2.7764),
        (4, 0.99, 4.6041),
        (8, 0.99, 3.3554),
        (30, 0.95, 2.0423),
        (200, 0.99, 2.6006),
        (1200, 0.95, 1.9619),
    ],
)
def test_students_t_is_that_of_the_tables(freedom: float, confidence: float, due: float) -> None:
    assert student.quantile(freedom, confidence) == pytest.approx(due, rel=1e-4)


def test_a_ratio_is_judged_as_welch_judges_the_difference() -> None:
    draw = random.Random(0)
    for _ in range(200):
        before, after = (student.mean([draw.gauss(100, 9) for _ in range(5)]) for _ in range(2))
        least, most = student.ratio(before, after, 0.9)
        low, high = student.difference(before, after, 0.9)
        assert least <= after.value / before.value <= most
        assert (least <= 1 <= most) == (low <= 0 <= high)


def test_of_nothing_there_is_no_ratio() -> None:
    nothing, some = student.mean([0.0] * 5), student.mean([1.0] * 5)
    assert student.ratio(nothing, some, 0.99) == (math.inf, math.inf)
    assert student.ratio(some, nothing, 0.99) == (0, 0)
    assert student.ratio(nothing, nothing, 0.99) == (1, 1)
    assert student.ratio(student.mean([0.0, 0.0, 0.0, 0.0, 5.0]), some, 0.99) == (0, math.inf)


def _second(draw: random.Random, at: int) -> Row:
    """With a p50 of few values, as a histogram has them, a p99 that strays and a longest that strays far."""
    p50 = round(draw.gauss(0.002, 0.0001), 5)
    p99 = p50 * (1 + draw.lognormvariate(0, 0.5))
    return Row(
        at=float(at),
        seconds=1.0,
        answers=round(draw.gauss(500, 25)),
        errors=sum(draw.random() < 0.2 for _ in range(10)),
        bytes=0,
        p50=p50,
        p90=p50 * draw.uniform(1.1, 1.5),
        p99=p99,
        max=p99 * draw.paretovariate(2),
    )


def _is_told_apart(before: Sample, after: Sample) -> bool:
    changes = [rates(before, after), *latencies(before, after), errors(before, after)]
    return any(change.is_shown for change in changes)


def _run(draw: random.Random, seconds: int) -> Sample:
    return Sample(rows=[_second(draw, at) for at in range(seconds)])


@pytest.mark.parametrize("seconds", [5, 6, 10])
def test_equal_runs_are_seldom_told_apart_however_short_they_are(seconds: int) -> None:
    draw = random.Random(seconds)
    told = sum(_is_told_apart(_run(draw, seconds), _run(draw, seconds)) for _ in range(_PAIRS))
    assert told / _PAIRS <= 0.05


def test_runs_that_differ_by_a_fourth_are_told_apart_after_ten_seconds() -> None:
    draw = random.Random(0)
    slower = _run(draw, 10)
    faster = [replace(row, answers=row.answers * 5 // 4) for row in _run(draw, 10).rows]
    assert rates(slower, Sample(rows=faster)).is_shown
