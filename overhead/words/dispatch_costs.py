"""What one dispatch costs through each stack, in words: the names of rows and callers, costs, and
their doubts.
"""

from __future__ import annotations

from overhead.reading.dispatch_costs import DispatchCosts, DispatchRow, Kind, doubt_of
from overhead.reading.missing_values import why
from overhead.reading.plain_text import plain
from overhead.reading.precision import mode_of
from overhead.results import Record, RowGroup
from overhead.words.format import cost_text, ends_text, micro, micro_of
from overhead.words.reasons import one_line

KIND_TITLES: dict[Kind, str] = {
    "python": "from Python",
    "compiled": "from compiled code",
    "browser": "from JavaScript",
    "batched": "batched: in a CUDA graph or in one pass",
}
KIND_WORDS: dict[Kind, str] = {**KIND_TITLES, "batched": "batched"}
GROUP_TITLES: dict[RowGroup, str] = {
    "arrays": "operations on arrays",
    "kernels": "a kernel of your own",
    "webgpu": "WebGPU and Vulkan",
    "others": "others",
}
_NO_BATCH = "not measured in this run"
_USUAL_UNITS = ("dispatch", "launch")


def title(costs: DispatchCosts) -> str:
    """What the costs are of: ``GPU dispatch overhead on NVIDIA H200``."""
    what = "Kernel launch" if costs.hardware else "Call"
    return f"{what} overhead on {device_name(costs)}"


def device_name(costs: DispatchCosts) -> str:
    """The GPU or CPU that the costs are of; a CPU with the words "no GPU" where there is none."""
    return costs.device if costs.view.has_gpu else f"{costs.device}, no GPU"


def why_unresolved(record: Record) -> str:
    """Why the cost of a case is doubtful, with its interval in microseconds if it has one: it bends
    (long chains cost another amount), has two speeds, is noisy or may be zero. '' if it is not.
    """
    figure, doubt = record.figure("complete"), doubt_of(record)
    if doubt is None:
        return ""
    if figure is None or doubt == "no-value":
        return one_line(why(record, "complete"), 160)
    if doubt == "bends":
        # The figure has the cost in short chains and that in long ones.
        short, long = (micro_of(mode_of(figure, mode)) for mode in figure.modes[:2])
        return f"nonlinear: {short}, and {long} in long chains"
    if doubt == "two-speeds":
        return f"two speeds, {cost_text(record)}"
    # What is left: a status that is not ``ok``, or an interval that reaches zero.
    name = figure.status if doubt == "status" else "not above zero"
    cost = figure.measured
    if cost is None or not cost.bounded:
        return name
    return f"{name}, {ends_text(cost / 1e3)}"


def kind_remark(row: DispatchRow, kind: Kind) -> str:
    """The remark on a stack's cost from one kind of caller: why it is doubtful, and which other
    operation compiled code runs. ``kind``: "python", "compiled", "browser", or "batched".
    """
    # ``lacks_batch``: the stack can batch dispatches, and this run did not measure it.
    if kind not in row.records:
        return _NO_BATCH if kind == "batched" and row.lacks_batch else ""
    remarks = [why_unresolved(row.records[kind])]
    if kind == "compiled":
        remarks.append(_operand(row))
    return "; ".join(filter(None, remarks))


def _operand(row: DispatchRow) -> str:
    """The operation that compiled code runs where it is not the row's own, with its cost from
    Python, so that the two callers can still be compared; else ''.
    """
    operand = row.operand
    if operand is None:
        return ""
    if operand.python is None:  # its cost from Python is not known
        return operand.operation
    return f"{operand.operation}, {micro(operand.python)} from Python"


def remarks(row: DispatchRow) -> str:
    """The remarks on a stack's costs from all callers: ``from Python: noisy, 19.6 to 20.4``."""
    texts = []
    for kind in row.kinds:
        remark = kind_remark(row, kind)
        if remark:
            texts.append(f"{KIND_WORDS[kind]}: {remark}")
    return "; ".join(texts)


def notes(row: DispatchRow, split: str) -> str:
    """The small print below a stack's name: what one call does, if it is neither a dispatch nor a
    launch, and which other operation compiled code runs, whose CPU time is divided too. ``split``:
    what the reader sees divided.
    """
    texts = [other_unit(row)]
    if row.operand is not None:
        of_other = f" and in the {split}" if row.python is not None else ""
        texts.append(f"from compiled code{of_other}: {row.operand.operation}")
    return "; ".join(filter(None, texts))


def other_unit(row: DispatchRow) -> str:
    """What one call does, where it is neither a dispatch nor a launch; else ''."""
    return "" if row.unit in _USUAL_UNITS else f"one call is one {plain(row.unit, 20)}"
