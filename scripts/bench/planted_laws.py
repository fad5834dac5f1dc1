"""Laws that no line describes, or only up to some n: two hundred, drawn from a seed, of families that people meet.

A figure is wrong if it is ``ok`` and differs by more than 3 % from the mean cost of a unit up to its ``holds_to``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from overhead.measure.fitting.line import Floats
from tests.fakes.machine import Law

Extra = Callable[[Floats], Floats]


@dataclass(frozen=True)
class PlantedLaw:
    """``cost``: the true mean ns per unit from n units on, without a tail. ``mean``: with everything, ns; 0 for the
    same. ``refused``: no status ``ok`` is right at all."""

    family: str
    law: Law
    cost: Callable[[float], float]
    mean: float = 0.0
    refused: bool = False


class _Dice:
    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def between(self, low: float, high: float) -> float:
        """Log-uniform."""
        return float(np.exp(self.random.uniform(np.log(low), np.log(high))))


def _line(dice: _Dice, unit: float, **more: object) -> Law:
    synchronous = bool(dice.random.integers(2))
    fixed = 0.0 if synchronous else dice.between(2e3, 100e3)
    noise = {"wake": 0.0 if synchronous else 1_000.0, "jitter": 0.005, "scatter": 0.1, "own": 0.003}
    return Law(unit, 0.0, fixed, synchronous=synchronous, **noise, **more)  # type: ignore[arg-type]


def _stepwise(family: str, dice: _Dice, unit: float, extra: Extra) -> PlantedLaw:
    """A law with ``extra`` host time of n units."""

    def cost(n: float) -> float:
        return unit + float(extra(np.array([n]))[0]) / n

    return PlantedLaw(family, _line(dice, unit, extra=extra), cost)


def _flush(dice: _Dice, unit: float) -> PlantedLaw:
    every, share = round(dice.between(50, 20_000)), dice.between(0.1, 2)
    return _stepwise("flush", dice, unit, lambda n: np.floor(n / every) * every * share * unit)


def _bucket(dice: _Dice, unit: float) -> PlantedLaw:
    free, factor = dice.between(100, 50_000), dice.between(1.2, 10)
    return _stepwise("bucket", dice, unit, lambda n: np.maximum(n - free, 0) * (factor - 1) * unit)


def _cache(dice: _Dice, unit: float) -> PlantedLaw:
    at, share = dice.between(200, 50_000), dice.between(0.1, 1)
    return _stepwise("cache", dice, unit, lambda n: np.where(n > at, n * share * unit, 0))


def _cheaper(dice: _Dice, unit: float) -> PlantedLaw:
    at, share = dice.between(200, 50_000), dice.random.uniform(0.1, 0.8)
    return _stepwise("cheaper later", dice, unit, lambda n: -np.maximum(n - at, 0) * share * unit)


def _parity(dice: _Dice, unit: float) -> PlantedLaw:
    of, share = int(dice.random.choice([2, 4, 8, 16, 32])), dice.random.uniform(0.1, 0.5)
    found = _stepwise("parity", dice, unit, lambda n: np.where(n % of == 0, -n * share * unit, 0))
    return PlantedLaw("parity", found.law, lambda n: unit)


def _powers(dice: _Dice, unit: float) -> PlantedLaw:
    share = dice.random.uniform(0.1, 0.6)

    def extra(n: Floats) -> Floats:
        return np.where(np.log2(np.maximum(n, 1)) % 1 == 0, -n * share * unit, 0)

    return PlantedLaw("powers of two", _line(dice, unit, extra=extra), lambda n: unit)


def _warm_up(dice: _Dice, unit: float) -> PlantedLaw:
    warm = dice.random.uniform(0.2, 1.0)
    return PlantedLaw("warm-up", _line(dice, unit, warm=warm, warm_s=dice.between(0.05, 10)), lambda n: unit)


def _poll(dice: _Dice, unit: float) -> PlantedLaw:
    law = _line(dice, unit, poll=dice.between(2e5, 16e6), locked=bool(dice.random.integers(2)))
    return PlantedLaw("poll", law, lambda n: unit)


def _tail(dice: _Dice, unit: float) -> PlantedLaw:
    size, index = dice.between(10, 1000) * unit, dice.random.uniform(1.5, 3)
    share = dice.between(0.002, 0.05) * unit / size
    mean = index / (index - 1) * (1 - 1000 ** (1 - index) / index)
    law = _line(dice, unit, tail=share, tail_ns=size, tail_index=index)
    return PlantedLaw("tail", law, lambda n: unit, unit + share * size * mean)


def _lazy(dice: _Dice, unit: float) -> PlantedLaw:
    return PlantedLaw("lazy", _line(dice, unit, lazy=dice.between(0.1, 20) * unit), lambda n: unit, refused=True)


_FAMILIES = (_flush, _bucket, _cache, _cheaper, _parity, _powers, _warm_up, _poll, _tail, _lazy)


def planted_laws(seed: int, count: int = 200) -> list[PlantedLaw]:
    """So many laws, of each family the same number, with units of 0.3 to 50 us."""
    dice = _Dice(seed)
    return [_FAMILIES[i % len(_FAMILIES)](dice, dice.between(300, 50e3)) for i in range(count)]
