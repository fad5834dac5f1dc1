"""The rows, the table and the findings of callers at once in words."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from overhead.contention.evidence import LimitEvidence
from overhead.contention.rows import (
    MeetAtDevice,
    PeersRow,
    PeersVerdicts,
    Pinning,
    Placing,
    RatioAt,
)
from overhead.devices import without_brackets
from overhead.reading.plain_text import plain
from overhead.reading.view import parameter_texts
from overhead.results import Caller, Limit, Placement, Value, Way, codes_of, exactly, formed, hull
from overhead.words.format import (
    MICRO,
    TIMES,
    between,
    ends_text,
    factor_spread,
    listed,
    micro_of,
    number,
    positive_ends_text,
    whole,
)
from overhead.words.names import CALLER_WORDS
from overhead.words.printed import printed

PAGE_TITLE = "Many at once"
ABOUT_MANY_AT_ONCE = (
    "What a kernel launch costs while other processes or threads of the same machine launch kernels"
    " too."
)
ADDS_A_TENSOR = "On this page PyTorch runs x.add_(y); on the first page PyTorch runs x.add_(1)."
RANGE_IS_NOISY = "A range without a value is the interval of a noisy cost."
RANGE_ABOVE = (
    'K callers do at most K times as much work as one caller. "at least": the noise of the cost at'
    " K=1 would give more."
)
MEDIAN_DEVICE = "The cost at K=1 is the median of the devices."
WHAT_LIMITS = "What limits each case, and what shows it"
PINNED_COLUMN = "pinned to"
EACH_PEER_COLUMN = "lowest to highest"
LIMIT_COLUMN = "limit"
NO_COST = "No cost of"
_PINNED: dict[Placement, str] = {"free": "", "core": "a core", "node": "a node"}
_CALLERS: dict[Caller, str] = {
    "binding": "Python",
    "browser": "JavaScript",
    "ffi": "Python, no wrapper objects",
    "native": "compiled code",
}
"""Callers in the column "called from"."""
_LIMITS: dict[Limit, str] = {
    "": "none clear",
    "processors": "too few CPU cores",
    "interpreter": "Python's lock",
    "lock": "shared lock",
    "slices": "time slices",
    "device": "the device",
    "unknown": "not known",
}
"""What limits, in the table; docs/contention.md tells what each means."""
_DRIVER_LOCK = "driver lock"
_MEANINGS: dict[Limit, str] = {
    "": "not clearly slower than alone",
    "interpreter": "one thread at a time runs Python code",
    "lock": "the callers wait for a lock of the library, driver or system",
    "slices": "the device works for one process at a time, in turns",
    "device": "it cannot do more work per second",
    "unknown": "the intervals leave the cause open",
}
"""What the words for a limit mean, but of those that say it themselves."""
"""A lock where the peers are processes: these share no lock of Python or of a library."""
_LIMITS_IN_SENTENCE: dict[Limit, str] = {
    "processors": "too few CPU cores",
    "interpreter": "Python's lock",
    "lock": "another lock",
    "slices": "time slices",
    "device": "the device",
}
"""What limits, inside a sentence."""
_OPEN: dict[str, str] = {
    "lock-or-device": "a lock or the device",
    "lock-or-short-queue": "a lock or a device with a short queue",
    "enqueue-time-tells-nothing": "a lock or the device",
    "interpreter-or-lock": "Python's lock or another lock",
    "lock-of-python-or-library": "Python's lock or another lock",
    "slower-processors-or-spinning-lock": "slower CPU cores or a lock that keeps them busy",
    "peers-perhaps-without-processor": "perhaps too few CPU cores",
    "want-lengthens-enqueue": "too few CPU cores or a lock",
}
"""Between which limits the intervals do not decide, by the code of the reason."""
_OPEN_OTHER = "no cause found"


@dataclasses.dataclass(frozen=True)
class WayWords:
    """A way in words. ``finding``: how a sentence on so many peers begins; ``peer``: one of them.

    ``advice``: what to use where all together surely do less than one.
    """

    title: str
    finding: str
    peer: str
    advice: str = ""


PEER_WORDS: dict[Way, WayWords] = {
    "processes": WayWords(
        "Processes on one device",
        "{} processes on one device together do",
        "process",
        "one process for each device",
    ),
    "threads": WayWords(
        "Threads of one process",
        "{} threads of one process together do",
        "thread",
        "one thread for all launches",
    ),
    "devices": WayWords(
        "A process for each device",
        "{} processes, each on its own device, together do",
        "process",
    ),
    "busy": WayWords(
        "While other processes are busy",
        "While {} other processes are busy, a launch costs",
        "process",
    ),
}


def label(row: PeersRow) -> str:
    """The stack of a row, and what tells it apart from other rows."""
    return " ".join([row.first.target.stack, *_device(row), *_case(row), *_software(row)])


def label_without_software(row: PeersRow) -> str:
    """The same, also where the adapter computes on the CPU."""
    return " ".join([row.first.target.stack, *_device(row), *_case(row)])


def name(row: PeersRow) -> str:
    """The stack inside a sentence, where all devices count as one: ``the CUDA driver``."""
    return " ".join([plain(row.facts.label, 40), *_case(row), *_software(row)])


def _device(row: PeersRow) -> list[str]:
    return [f"#{plain(row.device, 16)}"] if row.device else []


def _case(row: PeersRow) -> list[str]:
    """What tells a row apart from other rows of its stack: the adapter, and its parameters."""
    parameters = parameter_texts(dict(row.params))
    adapter = " ".join(plain(without_brackets(name), 28) for name in row.on)
    return [f"on {adapter}", *parameters] if adapter else parameters


def _software(row: PeersRow) -> list[str]:
    return ["(software)"] if row.first.target.software else []


def called(row: PeersRow) -> str:
    """The caller, and the placement if it is not free: ``from Python, pinned to a core``."""
    caller = CALLER_WORDS[row.first.case.caller]
    pinned = _PINNED[row.first.placement]
    return f"{caller}, pinned to {pinned}" if pinned else caller


def caller_cell(row: PeersRow) -> str:
    """The caller in its column."""
    return _CALLERS[row.first.case.caller]


def placement_cell(row: PeersRow) -> str:
    """To what the peers are pinned, in its column."""
    return _PINNED[row.first.placement]


def limit_name(limit: Limit, way: Way) -> str:
    """What limits peers, in a column."""
    if limit == "lock" and way != "threads":
        return _DRIVER_LOCK
    return _LIMITS[limit]


def each_peer_cell(costs: Sequence[float]) -> str:
    """The lowest and the highest cost of a peer; '' of one peer."""
    if len(costs) <= 1:
        return ""
    return f"{micro_of(min(costs))} to {micro_of(max(costs))}"


def ratio_column(way: Way) -> str:
    """The heading of the column that compares with one alone."""
    return "vs. alone" if way == "busy" else "together"


def columns(way: Way, counts: Sequence[int]) -> list[str]:
    """The headings of a table of callers at once. ``way``: what they are, such as "threads";
    ``counts``: how many, a column for each.
    """
    # ``LIMIT_COLUMN``: what limits the cost. ``ratio_column``: the heading of the ratio to one
    # alone. ``EACH_PEER_COLUMN``: the costs of the fastest and of the slowest caller.
    of_counts = [f"K={k}" for k in counts]
    return [
        "stack",
        "called from",
        PINNED_COLUMN,
        LIMIT_COLUMN,
        ratio_column(way),
        *of_counts,
        EACH_PEER_COLUMN,
    ]


def table_title(way: Way, most: int) -> str:
    """The title of a table of callers at once. ``most``: the largest number of callers (peers) with
    a cost, at which two columns compare.
    """
    # K: the number of callers, as in the headings of the columns.
    of_k = "while K other processes are busy" if way == "busy" else f"for each of K {way}"
    ratios = ratio_column(way)
    return (
        f'Cost of one dispatch or launch {of_k}, {MICRO}; "{ratios}" and "{LIMIT_COLUMN}" at'
        f" K={most}"
    )


def each_peer_meaning(most: int) -> str:
    """What the column "each peer" means."""
    return f'"{EACH_PEER_COLUMN}": the costs of the fastest and of the slowest caller at K={most}.'


def answer(way: Way, found: PeersVerdicts, limits: Sequence[Limit]) -> str:
    """What a table of callers at once opens with: how all together compare with one alone, as the
    intervals show it, and what limits them.

    The largest group of cases comes first, with its ``limits``. The smaller groups are named in a
    sentence of their own.
    """
    begin = PEER_WORDS[way].finding.format(whole(found.peers, exactly(found.peers).origin))
    end = "as much as alone" if way == "busy" else "as much work as one alone"
    groups = [(found.more, "more"), (found.less, "less"), (found.even, "even")]
    # Of groups of one size the first stays first.
    (main, how), *others = sorted(groups, key=_fewer_cases)
    if how == "even":
        sentence = (
            f"{begin} neither clearly more nor clearly less than {_ALONE[way]}, with intervals of"
            f" {_range(main)}"
        )
    else:
        sentence = f"{begin} {_range(main)} {end}"
    said = [f"{sentence}.", *_limit_sentence(limits)]
    exceptions = []
    for cases, other in others:
        if cases:
            names = _names(cases, found.all)
            size = "not clearly more or less" if other == "even" else _range(cases)
            exceptions.append(f"through {names} it is {size}")
    if exceptions:
        text = "; ".join(exceptions)
        said.append(f"{text[0].upper()}{text[1:]}.")
    return " ".join(said)


def limit_meanings(way: Way, limits: Sequence[Limit]) -> str:
    """What the words for these limits mean; '' where they say it themselves."""
    meanings = []
    for limit in limits:
        meaning = f'"{limit_name(limit, way)}": {_MEANINGS.get(limit, "")}'
        if limit in _MEANINGS and meaning not in meanings:
            meanings.append(meaning)
    return f"Limit {'; '.join(meanings)}." if meanings else ""


def without(rows: Sequence[PeersRow]) -> str:
    """A sentence on the rows that the ranges leave out, as the CPU does their work."""
    names = list(dict.fromkeys(map(name, rows)))
    they = "runs" if len(names) == 1 else "run"
    return f"These ranges are without {listed(names)}, which {they} on the CPU."


_ALONE: dict[Way, str] = {
    "processes": "one alone",
    "threads": "one alone",
    "devices": "one alone",
    "busy": "alone",
}


def _fewer_cases(group: tuple[Sequence[RatioAt], str]) -> int:
    """What sorts groups of cases: the largest first."""
    return -len(group[0])


def _range(cases: Sequence[RatioAt]) -> str:
    """From the lowest end of the intervals of these ratios to the highest: ``1.3 to 5.3×``."""
    return f"{ends_text(hull([found.ratio for found in cases]))}{TIMES}"


def _points(cases: Sequence[RatioAt]) -> str:
    """From the lowest of these ratios to the highest, without their intervals."""
    ratios = sorted((found.ratio for found in cases), key=_value)
    lowest, highest = f"{number(ratios[0])}{TIMES}", f"{number(ratios[-1])}{TIMES}"
    return lowest if lowest == highest else f"{lowest} to {highest}"


def _value(of: Value) -> float:
    return of.value


def _low(ratio: Value) -> float:
    return ratio.value if ratio.low is None else ratio.low


def _high(ratio: Value) -> float:
    return ratio.value if ratio.high is None else ratio.high


def _names(cases: Sequence[RatioAt], judged: Sequence[RatioAt]) -> str:
    """The stacks of these cases; with the caller where another caller of the stack is not among
    them.
    """
    own = {found.row.first.key for found in cases}
    outside = {name(found.row) for found in judged if found.row.first.key not in own}
    names = []
    for found in cases:
        stack = name(found.row)
        if stack in outside:
            stack = f"{stack} {called(found.row)}"
        place = _PINNED[found.row.first.placement]
        if place:
            stack = f"{stack} (pinned to {place})"
        if stack not in names:
            names.append(stack)
    return listed(names)


def _limit_sentence(limits: Sequence[Limit]) -> list[str]:
    """A sentence that names what limits: "The limit is the device." None where nothing is known."""
    known = []
    for limit in limits:
        if limit != "unknown" and _LIMITS_IN_SENTENCE[limit] not in known:
            known.append(_LIMITS_IN_SENTENCE[limit])
    if not known:
        return []
    where = "Where the limit is known, it is" if "unknown" in limits else "The limit is"
    text = listed(known, "or")
    # Without another one beside it, there is no other lock.
    if known == ["another lock"]:
        text = "a lock"
    return [f"{where} {text}."]


def meeting(way: Way, found: MeetAtDevice) -> str:
    """A sentence on the stacks that come to the same rate when many callers use them, because the
    device limits all of them.
    """
    names = list(dict.fromkeys(map(name, found.rows)))
    # ``low`` and ``high``: the ends of the intervals of all these stacks, ns a unit of all callers
    # together.
    rate = between(found.low / 1e3, found.high / 1e3)
    return (
        f"The device limits {listed(names)}: {found.peers} {way} together need {rate} {MICRO} per"
        " dispatch or launch through each of these stacks. So a stack that is slow with one of the"
        f" {way} gains more from several."
    )


def advice(way: Way) -> str:
    """What to use where all together do less than one."""
    return f"Where all together do less than one, use {PEER_WORDS[way].advice}."


def pinning(way: Way, found: Pinning) -> str:
    """A sentence on the callers that were pinned to CPU cores: whether this changed a cost."""
    peer = PEER_WORDS[way].peer
    places = listed(list(dict.fromkeys(_PINNED[row.first.placement] for row in found.same)), "or")
    if not found.other:
        return f"Pinning each {peer} to {places} changed no cost beyond its interval."
    others = listed(list(dict.fromkeys(row_of_all(row) for row in found.other)))
    if not found.same:
        return f"Pinning made a difference that is sure: {others}."
    return f"Pinning each {peer} to {places} made a difference that is sure only here: {others}."


def limit_line(way: Way, found: LimitEvidence, judged: Sequence[RatioAt]) -> str:
    """One line on a limit: the cases that it slows, and the figures that show it. ``judged``: the
    cases of all limits.
    """
    names = _names(found.slowdowns, judged)
    limit = limit_name(found.limit, way)
    clauses = [f"a launch takes {_points(found.slowdowns)} as long as alone"]
    if found.enqueue and found.limit != "slices":
        clauses.append(f"its enqueue time {_points(found.enqueue)}")
    if found.from_python:
        times = _points(found.from_python)
        clauses.append(f"all calls from Python take {times} as long as from compiled code")
    if found.limit == "slices" and found.slices:
        clauses.append(f"the device works for one process for {_micros(found.slices)}")
    if found.limit == "slices" and found.switches:
        clauses.append(f"a switch to the next takes {_micros(found.switches)}")
    if found.limit == "unknown":
        clauses.append(_open_causes(found))
    return f"{limit[0].upper()}{limit[1:]} ({names}): {'; '.join(clauses)}."


def _micros(times_ns: Sequence[RatioAt]) -> str:
    """From the shortest time to the longest, with the unit."""
    low = min(_low(one.ratio) for one in times_ns)
    high = max(_high(one.ratio) for one in times_ns)
    return f"{between(low / 1e3, high / 1e3)} {MICRO}"


def _open_causes(found: LimitEvidence) -> str:
    """Between which causes the intervals do not decide, each with its cases."""
    cases: dict[str, list[str]] = {}
    for row, why in found.reasons:
        codes = codes_of(why)
        causes = [cause for code, cause in _OPEN.items() if code in codes]
        for cause in causes or [_OPEN_OTHER]:
            cases.setdefault(cause, []).append(name(row))
    texts = []
    for cause, names in cases.items():
        texts.append(f"{cause} ({listed(list(dict.fromkeys(names)))})")
    return f"the intervals leave open: {', '.join(texts)}"


def placing(found: Placing) -> str:
    """A sentence on machines with several devices and a process for each: which cases are clearly
    slower than alone, unpinned and pinned to a core or node. If none is, up to what the intervals
    reach.
    """
    if not found.limited:
        sentence = "Processes, each on its own device, do not clearly slow each other"
        if found.is_bounded:
            # ``highest``: the upper end of the interval of the largest slowdown.
            largest = found.largest
            end = Value(found.highest, origin=formed("upper end", largest.origin))
            most = printed(f"{end.value:.2f}{TIMES}", end)
            sentence += f": no interval of a slowdown goes above {most}"
        return f"{sentence}."
    cases = []
    for limited in found.limited:
        # The slowdowns of one case: one for each way of pinning, at the same number of devices
        # (peers).
        first = limited.slowdowns[0]
        slowdowns = []
        for slowdown in limited.slowdowns:
            slowdowns.append(f"{called(slowdown.row)} {factor_spread(slowdown.ratio)}")
        cases.append(f"{name(first.row)} {', '.join(slowdowns)} (K={first.peers})")
    listing = "; ".join(cases)
    return f"Some processes, each on its own device, are slower than alone: {listing}."


def case(row: PeersRow, *peers: int) -> str:
    """A row with its numbers of peers."""
    numbers = ", ".join(map(str, peers))
    return f"{name(row)} {called(row)} (K={numbers})"


def row_of_all(row: PeersRow) -> str:
    """A row, whatever the number of peers."""
    return f"{name(row)} {called(row)}"


def at_least(value: Value) -> str:
    """The lower end of a ratio that has no upper one."""
    return f"at least {number(value.floor)}"


def noisy_cell(value: Value, sign: str) -> str:
    """A noisy value in a table: its interval alone, or its status where that is not known."""
    if value.low is None or value.high is None:
        return f"{number(value)}{sign} {value.status}"
    return positive_ends_text(value)
