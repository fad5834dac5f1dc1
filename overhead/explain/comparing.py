"""Two explanations of one step side by side: what was counted, what was timed, and whether they differ."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct

from overhead import results
from overhead.blocks.parts import Part, Table, Text
from overhead.bounded_files import read_start
from overhead.errors import BadFile
from overhead.explain.record import Explanation, is_explanation, read_explanation
from overhead.reading.format import MICRO, factor, micro_spread
from overhead.reading.next_run import FigureClass, half_width, spread_of
from overhead.results import Figure, Machine

_HEAD_BYTES = 4096
_TIMES: dict[str, FigureClass] = {"wall": "host", "issue": "host", "busy": "device"}
_COUNTS = ("launches", "copies", "allocations", "synchronisations")

_NAMES = {"wall": f"step, {MICRO}", "issue": f"host, {MICRO}", "busy": f"device busy, {MICRO}"}
_WORDS = {"changed": "changed", "same": "no difference", "unknown": "not tested"}


class ExplainedPair(Struct, frozen=True, kw_only=True):
    """One figure of both. ``ratio``: new over base, None unless both have values above zero.

    ``verdict``: ``changed``; ``same`` if another run of the same program could differ as much; ``unknown`` with a
    reason.
    """

    name: str
    unit: str
    base: Figure
    new: Figure
    ratio: float | None
    verdict: Literal["changed", "same", "unknown"]
    reason: str = ""


class ExplainedPairs(Struct, frozen=True, kw_only=True):
    """``differences``: what else the two files do not share, in words. ``pairs``: the figures."""

    base: str
    new: str
    base_verdict: str
    new_verdict: str
    differences: list[str]
    pairs: list[ExplainedPair]

    def to_dict(self) -> dict[str, object]:
        """The comparison as plain data, for JSON."""
        found: dict[str, object] = results.to_builtins(self)
        return found


def are_explanations(base: Path, new: Path) -> bool:
    """Whether both files are explanations. Raises ``BadFile`` if one alone is."""
    kinds = [_is_explanation(path) for path in (base, new)]
    if any(kinds) and not all(kinds):
        raise BadFile(f"{base} and {new}: one is an explanation and the other is not")
    return all(kinds)


def _is_explanation(path: Path) -> bool:
    try:
        return is_explanation(read_start(path, _HEAD_BYTES))
    except BadFile:
        return False


def compare_explanations(base: Path, new: Path) -> ExplainedPairs:
    """Compare two files. Raises ``BadFile``."""
    return compared(read_explanation(base), read_explanation(new), (base.name, new.name))


def compared(base: Explanation, new: Explanation, names: tuple[str, str] = ("base", "new")) -> ExplainedPairs:
    """Compare two explanations. ``names``: how they are called."""
    machine = base.machine if base.machine.id == new.machine.id else None
    pairs = [
        _time(name, kind, getattr(base.step, name), getattr(new.step, name), machine) for name, kind in _TIMES.items()
    ]
    pairs += [_count(name, getattr(base.per_step, name), getattr(new.per_step, name)) for name in _COUNTS]
    return ExplainedPairs(
        base=names[0],
        new=names[1],
        base_verdict=base.verdict.kind,
        new_verdict=new.verdict.kind,
        differences=list(_differences(base, new)),
        pairs=pairs,
    )


def _differences(base: Explanation, new: Explanation) -> list[str]:
    found = [
        f"{name}: {ours} and {theirs}"
        for name, ours, theirs in (
            ("machine", base.machine.cpu, new.machine.cpu),
            ("device", base.program.device, new.program.device),
            ("program", f"{base.program.file}:{base.program.function}", f"{new.program.file}:{new.program.function}"),
            ("arguments", str(base.program.arguments), str(new.program.arguments)),
        )
        if ours != theirs
    ]
    for name in sorted(base.versions.keys() | new.versions.keys()):
        ours, theirs = base.versions.get(name, "none"), new.versions.get(name, "none")
        if ours != theirs:
            found.append(f"{name}: {ours} and {theirs}")
    return found


def _time(name: str, kind: FigureClass, base: Figure, new: Figure, machine: Machine | None) -> ExplainedPair:
    """Two runs on one machine differ by the spread between runs, which is wider than the interval of either."""
    ratio = _ratio(base, new)
    if ratio is None:
        return _unknown(name, base, new, base.reason or new.reason or "no value")
    if machine is None:
        return _unknown(name, base, new, "two machines", ratio)
    if (spread := spread_of(kind, machine)) is None:
        return _unknown(name, base, new, "the spread between runs of this kind of machine is not known", ratio)
    if base.status != "ok" or new.status != "ok":
        return _unknown(name, base, new, base.reason or new.reason, ratio)
    changed = abs(math.log(ratio)) > half_width(spread)
    least = math.exp(half_width(spread)) - 1
    reason = "" if changed else f"another run may differ by {100 * least:.0f} %"
    verdict: Literal["changed", "same"] = "changed" if changed else "same"
    return ExplainedPair(name=name, unit=base.unit, base=base, new=new, ratio=ratio, verdict=verdict, reason=reason)


def _count(name: str, base: Figure, new: Figure) -> ExplainedPair:
    if base.value is None or new.value is None:
        return _unknown(name, base, new, base.reason or new.reason or "no value")
    verdict: Literal["changed", "same"] = "same" if base.value == new.value else "changed"
    return ExplainedPair(name=name, unit="count", base=base, new=new, ratio=_ratio(base, new), verdict=verdict)


def _ratio(base: Figure, new: Figure) -> float | None:
    if base.value is None or new.value is None or base.value <= 0 or new.value <= 0:
        return None
    return new.value / base.value


def _unknown(name: str, base: Figure, new: Figure, reason: str, ratio: float | None = None) -> ExplainedPair:
    return ExplainedPair(name=name, unit=base.unit, base=base, new=new, ratio=ratio, verdict="unknown", reason=reason)


def pair_blocks(found: ExplainedPairs) -> Iterator[Part]:
    """What the two files do not share, then a row for each figure."""
    changed = "; ".join(found.differences) or "nothing that the files record"
    verdicts = f"BASE {found.base}: {found.base_verdict}-bound. NEW {found.new}: {found.new_verdict}-bound."
    yield Text([verdicts, f"What changed: {changed}."])
    rows = [
        (
            _NAMES.get(pair.name, pair.name),
            _value(pair.base),
            _value(pair.new),
            factor(pair.ratio) if pair.ratio is not None else "",
            _WORDS[pair.verdict] + (f": {pair.reason}" if pair.reason else ""),
        )
        for pair in found.pairs
    ]
    yield Table("", ["each step", "BASE", "NEW", "NEW / BASE", "verdict"], rows, numeric=(1, 2, 3))


def _value(figure: Figure) -> str:
    if figure.unit == "count":
        return f"{figure.value:,.4g}" if figure.value is not None else figure.status
    return micro_spread(figure)
