"""Intervals of means that are known from few values, by Student's t as Welch has it for two sets of them.

Pure: no reports. A bootstrap of five values draws from these five, so its intervals are too narrow.

Invariant: an interval has what it is about in it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

# Of the integral: far finer than what is printed.
_STEPS = 100
_HALVINGS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value, and how far from it another look might have found it."""

    value: float
    variance: float
    freedom: int  # degrees of it: one less than there were values


def mean(values: Sequence[float]) -> Estimate:
    """Of two values at least."""
    middle = fmean(values)
    return _estimate(middle, [value - middle for value in values])


def share(parts: Sequence[float], wholes: Sequence[float]) -> Estimate:
    """The sum of the parts by that of the wholes, pair for pair."""
    whole = sum(wholes)
    if not whole:
        return Estimate(value=0.0, variance=0.0, freedom=len(wholes) - 1)
    value, scale = sum(parts) / whole, len(wholes) / whole
    strays = [(part - value * size) * scale for part, size in zip(parts, wholes, strict=True)]
    return _estimate(value, strays)


def _estimate(value: float, strays: Sequence[float]) -> Estimate:
    freedom = len(strays) - 1
    variance = math.fsum(stray * stray for stray in strays) / freedom / len(strays)
    return Estimate(value=value, variance=variance, freedom=freedom)


def difference(before: Estimate, after: Estimate, confidence: float) -> tuple[float, float]:
    """From which to which the second lies above the first."""
    far = _times(before, after, confidence) * math.sqrt(before.variance + after.variance)
    moved = after.value - before.value
    return moved - far, moved + far


def ratio(before: Estimate, after: Estimate, confidence: float) -> tuple[float, float]:
    """From how many to how many times the first the second is, both 0 or more; by Fieller's theorem."""
    if not before.value:
        return (math.inf, math.inf) if after.value else (1.0, 1.0)
    squared = _times(before, after, confidence) ** 2
    # Those r for which (after - r before)^2 is no more than t^2 (its variance + r^2 the other's).
    square = before.value**2 - squared * before.variance
    free = after.value**2 - squared * after.variance
    if square <= 0:
        # The first may as well be nothing.
        return 0.0, math.inf
    half = before.value * after.value
    root = math.sqrt(max(half * half - square * free, 0.0))
    return max(half - root, 0.0) / square, (half + root) / square


def _times(before: Estimate, after: Estimate, confidence: float) -> float:
    """How many standard errors wide the interval is, to each side."""
    largest = max(before.variance, after.variance)
    if not largest:
        return 0.0
    # Welch's degrees of freedom; of parts of the larger one, whose squares are numbers however small it is.
    one, other = before.variance / largest, after.variance / largest
    freedom = (one + other) ** 2 / (one**2 / before.freedom + other**2 / after.freedom)
    return quantile(freedom, confidence)


def quantile(freedom: float, confidence: float) -> float:
    """What a value of Student's t lies within, on both sides of 0, with that probability."""
    # With t = sqrt(freedom) * tan(angle) its density is a power of the cosine.
    whole = math.sqrt(math.pi) * math.exp(math.lgamma(freedom / 2) - math.lgamma((freedom + 1) / 2))
    least, most = 0.0, math.pi / 2
    for _ in range(_HALVINGS):
        angle = (least + most) / 2
        if 2 * _integral(freedom - 1, angle) < confidence * whole:
            least = angle
        else:
            most = angle
    return math.sqrt(freedom) * math.tan(least)


def _integral(power: float, angle: float) -> float:
    """Of the cosine to that power, from 0 on, by Simpson's rule."""
    step = angle / _STEPS
    values = [math.pow(math.cos(at * step), power) for at in range(_STEPS + 1)]
    return step / 3 * (values[0] + values[-1] + 4 * sum(values[1:-1:2]) + 2 * sum(values[2:-1:2]))
