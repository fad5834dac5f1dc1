"""Rules on how a stack is called: from compiled code, and by a shorter way into the library."""

from __future__ import annotations

from overhead.reading.findings import Finding, rule
from overhead.reading.findings._changes import Change, case, change, changes, finding
from overhead.reading.format import MICRO, cost_text
from overhead.reading.view import TargetView, View
from overhead.results import Scalar

_LEAST_TIMES = 1.3
"""Another way to call must be surely this many times as cheap."""
_SHORT_WAYS: dict[str, tuple[dict[str, Scalar], str]] = {
    "triton": ({"entry": "compiled"}, "Launch Triton's compiled kernel instead of the jit function"),
    "cupy": ({"operation": "raw-kernel"}, "Write the operation as a RawKernel instead of CuPy's array operation"),
    "torch": ({"operand": "tensor"}, "Pass PyTorch a tensor operand instead of a Python number"),
}
"""By stack: the parameters of a case with less work on the host, and what to do in words."""


@rule("compiled")
def from_compiled_code(view: View) -> Finding | None:
    """The same calls cost less from compiled code than from Python."""

    def of(target: TargetView) -> Change | None:
        if target.base.caller != "binding" or target.first.api == "CPU":
            return None
        return change(target, target.base, case(target, caller="native"), _LEAST_TIMES)

    found = changes(view, of)
    if not found:
        return None
    first = found[0]
    title = (
        f"Call {first.name} from compiled code: {cost_text(first.after)} {MICRO} a {first.before.unit} instead of "
        f"{cost_text(first.before)} from Python."
    )
    return finding(title, found, "The calls are the same; the loop around them is not Python.")


@rule("short-way")
def short_way(view: View) -> Finding | None:
    """A library's own shorter way to the same launch costs less."""

    def of(target: TargetView) -> Change | None:
        if target.stack not in _SHORT_WAYS or target.first.api == "CPU":
            return None
        return change(target, target.base, case(target, _SHORT_WAYS[target.stack][0]), _LEAST_TIMES)

    found = changes(view, of)
    if not found:
        return None
    title = f"{_SHORT_WAYS[found[0].target.stack][1]}: {found[0].instead}."
    return finding(title, found, "It applies where the launch itself, and not the kernel, limits the speed.")
