"""Rules on how a stack is called: from compiled code, and by a shorter way into the library."""

from __future__ import annotations

from overhead.reading.findings import Finding, rule
from overhead.reading.findings._changes import Change, change_above, changes, finding, variant
from overhead.reading.format import MICRO, cost_text, plain
from overhead.reading.view import TargetView, View

_LEAST_TIMES = 1.3
"""Another way to call must be surely this many times as cheap."""


@rule("compiled")
def from_compiled_code(view: View) -> Finding | None:
    """Advise calls from compiled code where they surely cost less than the same calls from Python; else None."""

    def compiled(target: TargetView) -> Change | None:
        usual = view.comparison("python-share", target.base.key) is not None and target.first.api != "CPU"
        return change_above(_LEAST_TIMES, target, target.base, variant(target, caller="native") if usual else None)

    return finding(
        changes(view, compiled),
        lambda first: (
            f"Call {first.name} from compiled code: {cost_text(first.after)} {MICRO} a {first.before.unit} "
            f"instead of {cost_text(first.before)} from Python."
        ),
        "The calls are the same; the loop around them is not Python.",
    )


@rule("short-way")
def short_way(view: View) -> Finding | None:
    """Advise a library's own shorter way to the same launch where it surely costs less; else None."""

    def shorter(target: TargetView) -> Change | None:
        way = target.facts.short_way
        if way is None or target.first.api == "CPU":
            return None
        return change_above(_LEAST_TIMES, target, target.base, variant(target, way.params))

    return finding(
        changes(view, shorter),
        lambda first: f"{_advice(first)}: {first.instead}.",
        "It applies where the launch itself, and not the kernel, limits the speed.",
    )


def _advice(change: Change) -> str:
    way = change.target.facts.short_way
    return plain(way.advice, 120) if way is not None else ""
