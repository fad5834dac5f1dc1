"""Chains whose sampling loop runs in the page: the base class, the chain of the step, and the cases
of the step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from overhead.probes.base import Chain, Space, Unsupported, Unverified
from overhead.probes.browser import identity, messages
from overhead.probes.browser.session import BrowserSession
from overhead.probes.common.availability import is_accepted
from overhead.probes.common.step import RING, webgpu_window
from overhead.probes.kernels import LLVMPIPE_TURNS, lcg
from overhead.results import Case, Overlap, Pattern, Scalar, because

SAMPLES_PER_REQUEST = 16
"""Most samples that one command asks for, so that the page answers soon."""
WAITING_PATTERNS = frozenset({"wait-each", "read-each"})
_PIPELINED = frozenset({"per-submit", "per-k"})
_MAY_BE_INDEPENDENT = frozenset({"per-submit", "per-k", "per-pass", "one-pass"})
_LEAST_RISE_NS = {"chromium": 40_000_000, "firefox": 150_000_000}
_POLL_NS = {"firefox": 100_000_000}
"""Time between two polls for finished work, for browsers where T(n) rises in steps of this time.

Chromium polls about every 2 ms.
"""
_MAX_N = {"fused": 1 << 24, "wait-each": 64, "read-each": 64}


class PageChain(Chain):
    """A chain in a browser. ``sample`` runs the whole loop there. ``issue`` and ``wait`` run units
    without timing.

    ``write_first``: ``buffers`` and ``data`` that the page writes before it times a sample; empty
    for none.
    """

    def __init__(self, session: BrowserSession, pattern: Pattern) -> None:
        """Describe the chain to the sampler (see the attributes of ``Chain``): its limits and flags
        are those of the page's browser. The page opens nothing yet; a subclass sends the command
        ``open``. ``latency``: each unit contains its own wait. ``synchronous``: ``issue`` returns
        only when the work is done. ``least_ns``: by how much the longest chain must take longer
        than one unit. ``poll_ns``: the time between two looks of the browser whether work has
        finished.
        """
        self.session = session
        # By this number the page knows the chain in each command.
        self.number = session.next_chain()
        self.overlap: Overlap = "pipelined" if pattern in _PIPELINED else "serial"
        waits_each = (
            pattern in WAITING_PATTERNS
        )  # for each unit, so that issuing ends with the work
        self.latency = waits_each
        self.synchronous = waits_each
        # 2^18 units, but 64 where each unit waits, and 2^24 turns of the loop of a fused kernel.
        self.max_n = _MAX_N.get(pattern, 1 << 18)
        self.clock_step_ns = session.page.clock_step_ns
        self.least_ns = _LEAST_RISE_NS.get(session.browser.kind, 0)
        # Where each unit waits itself, each takes a poll, so T(n) is no staircase.
        self.poll_ns = 0 if self.latency else _POLL_NS.get(session.browser.kind, 0)
        self.flags = identity.record_flags(session.page)
        # The wait of a warm-up unit would last until the next poll, 100 ms before every sample.
        self._warms_up = not self.poll_ns
        # How many units ``issue`` has promised; ``wait`` lets the page run them.
        self._pending = 0
        # ``buffers`` and ``data`` that the page writes before it times a sample; a subclass may set
        # them.
        self.write_first: Mapping[str, Any] = {}

    def sample(self, ns: Sequence[int], cpu: bool = False) -> list[list[int]]:
        """Rows ``[n, issue_ns, total_ns]``, one for each n of ``ns``. ``cpu`` is ignored: a page
        has no CPU clock.
        """
        return self.sample_idle(ns, 0.0)

    def units(self, ns: Sequence[int]) -> int:
        """The number of units that ``sample`` runs for these n, with warm-up units."""
        warm_up_units = len(ns) if self._warms_up else 0
        return sum(ns) + warm_up_units

    def sample_idle(self, ns: Sequence[int], idle_ms: float) -> list[list[int]]:
        """Rows ``[n, issue_ns, total_ns]`` as of ``sample``, but the page sleeps ``idle_ms`` before
        each n. If the page was hidden meanwhile, which lets a browser slow it down, the record says
        so by a flag.
        """
        rows: list[list[int]] = []
        # In several commands, so that the page answers each one soon. ``warm``: one untimed unit
        # runs before each sample. ``write_first``: what the page writes to buffers before a sample.
        for start in range(0, len(ns), SAMPLES_PER_REQUEST):
            asked = list(ns[start : start + SAMPLES_PER_REQUEST])
            answer = self.ask(
                "time", ns=asked, idle_ms=idle_ms, warm=self._warms_up, **self.write_first
            )
            # A row begins with its n.
            if [row[0] for row in answer.samples] != asked:
                raise Unverified(because("page-answered-for-other-n"))
            rows += answer.samples
            if not answer.visible and "hidden-page" not in self.flags:
                self.flags = [*self.flags, "hidden-page"]
        return rows

    def issue(self, n: int) -> None:
        """Add n to the units that ``wait`` runs."""
        self._pending += n

    def wait(self) -> None:
        """Run the issued units in the page and wait for them, without timing."""
        issued = self._pending
        self._pending = 0
        self.ask("run", ns=[issued])

    def close(self) -> None:
        """Release the buffers of the chain in the page."""
        self.ask("close")

    def write(self, buffers: Sequence[int], raw: bytes) -> None:
        """Write bytes to the buffers with these numbers, as if the buffers were joined."""
        for start in range(0, len(raw), messages.PIECE_BYTES):
            piece = raw[start : start + messages.PIECE_BYTES]
            self.ask("write", buffers=list(buffers), at=start, data=piece)

    def fetch_bytes(self, buffers: Sequence[int], size: int) -> bytes:
        """The bytes of the buffers with these numbers, joined, ``size`` in all, after all submitted
        work. They are asked for in pieces, because an answer of the page has a limited size.
        """
        pieces = []
        for start in range(0, size, messages.PIECE_BYTES):
            asked = min(messages.PIECE_BYTES, size - start)
            # ``at``: where the piece begins in the joined bytes. At 0 the page copies the buffers,
            # and the later pieces are parts of that copy.
            answer = self.ask("fetch", buffers=list(buffers), at=start, size=asked)
            if len(answer.data) != asked:
                raise RuntimeError(
                    because("page-gave-other-size", bytes=len(answer.data), expected=asked)
                )
            pieces.append(answer.data)
        return b"".join(pieces)

    def ask(self, do: str, **fields: Any) -> messages.PageAnswer:
        """Send the command ``do`` for this chain and return the page's answer. Raises
        ``Unverified``, ``Unsupported`` or ``RuntimeError`` if the page answers that it failed in
        this way.
        """
        # ``kind`` of the answer: how the command failed; '' if it did not.
        answer = self.session.ask(do, chain=self.number, **fields)
        if answer.kind == "unverified":
            raise Unverified(answer.error)
        if answer.kind == "unsupported":
            raise Unsupported(answer.error)
        if answer.kind:
            raise RuntimeError(because("in-the-page", text=answer.error))
        return answer


class BrowserChain(PageChain):
    """A chain that runs one case of the step (the stack's own unit of work) in the page."""

    def __init__(self, session: BrowserSession, case: Case) -> None:
        super().__init__(session, case.pattern)
        self.case = case
        self._seen: list[NDArray[np.uint32]] = []
        self._executed = 0
        self.ask("open", case=case_spec(case))

    def executed(self) -> int:
        """The number of steps that have run since the chain was opened. Raises ``Unverified`` if
        the values that the page reads back are not those after a number of steps.

        A step replaces each value by the next number of a random generator, so the values of the
        last reading and of this one tell how many steps ran between.
        """
        answer = self.ask("read")
        values = [np.array(words, np.uint32) for words in answer.values]
        # Independent units work on several buffers in turn, others all on one.
        buffers = RING if self.case.dependency == "independent" else 1
        if len(values) != buffers:
            raise Unverified(because("buffers-read-back", buffers=len(values)))
        values_before = self._seen or [lcg.seeds()] * buffers  # the page begins with the seeds
        # ``distance``: how many steps lead from the first values to the second.
        for before, after in zip(values_before, values, strict=True):
            self._executed += lcg.distance(before, after)
        self._seen = values
        return self._executed

    def window(self) -> dict[str, Scalar]:
        """What is timed, as names and values for the results file."""
        return step_window(self.case, self.session.page)

    def kernels(self) -> dict[str, str]:
        """SHA-256 of the WGSL that the page got, by file name."""
        name = "fused.wgsl" if self.case.pattern == "fused" else "step.wgsl"
        return {name: self.session.page.kernels[name]}


def case_spec(case: Case) -> messages.CaseSpec:
    """A case of the step in the form that is sent to the page. The page's own loop is the caller
    ``browser``. Raises ``Unsupported`` if the page cannot run the case.
    """
    if case.workload != "step" or case.caller != "browser":
        raise Unsupported(
            because("page-runs-step-from-javascript", workload=case.workload, caller=case.caller)
        )
    # ``CaseSpec`` names all patterns and parameters that the page has, and their values.
    fields = {"pattern": case.pattern, "dependency": case.dependency, **case.params}
    try:
        spec = msgspec.convert(fields, messages.CaseSpec)
    except msgspec.ValidationError as error:
        raise Unsupported(because("page-has-no-such-case", text=error)) from None
    # Independent units work on several buffers in turn, so each binds another one.
    may_be_independent = spec.bindgroup != "once" and spec.pattern in _MAY_BE_INDEPENDENT
    if spec.dependency == "independent" and not may_be_independent:
        raise Unsupported(because("independent-in-page"))
    if "wait" in case.params and case.pattern in WAITING_PATTERNS:  # these have a wait of their own
        raise Unsupported(because("pattern-brings-wait", pattern=case.pattern))
    has_k = spec.k > 1
    if (spec.pattern == "per-k") != has_k:  # this pattern needs k, and the others have none
        raise Unsupported(because("per-k-in-page"))
    return spec


def step_window(case: Case, page: messages.Page) -> dict[str, Scalar]:
    """What is timed, as names and values for the results file. The names are those of the native
    WebGPU stacks (of ``webgpu_window``), because only cases with equal values are compared.
    """
    spec = case_spec(case)
    units_per_submission = 1
    if spec.pattern == "per-k":
        units_per_submission = spec.k
    elif spec.pattern in ("per-pass", "one-pass", "fused"):
        units_per_submission = 0  # one submission of all units
    # Both kinds of wait: mapping a copy of a buffer, or the promise that the queue is empty.
    reads = spec.wait == "map" or case.pattern == "read-each"
    wait = "mapAsync of a 4-byte copy" if reads else "onSubmittedWorkDone"
    timed = webgpu_window(spec.pattern, units_per_submission, spec.bindgroup, wait)
    # On a fallback adapter the page splits long loops, which llvmpipe would silently stop.
    is_fallback = page.adapter is not None and page.adapter.fallback
    if case.pattern == "fused" and is_fallback:
        timed["dispatches"] = f"1 per {LLVMPIPE_TURNS} units"
    return timed


def step_space() -> Space:
    """The cases of the step in every browser, most informative first: a slow browser has time for
    only a few.

    They are the base case, one case for each other value of each axis, and the extra cases. Those
    that ``case_spec`` refuses are left out.
    """
    base = Case(pattern="per-submit", caller="browser")
    # Each unit binds another bind group, which independent units need: each works on another
    # buffer.
    rotated: dict[str, Scalar] = {"bindgroup": "rotated"}
    # ``per-k``: a submission for k units. Of the k, 16 comes first, because cases are measured in
    # this order.
    extra = [
        Case(pattern="per-k", caller="browser", params={"k": 16}),
        Case(pattern="per-k", caller="browser", params={"k": 4}),
        Case(pattern="per-k", caller="browser", params={"k": 64}),
        Case(pattern="per-k", caller="browser", params={"k": 256}),
        Case(pattern="per-submit", caller="browser", dependency="independent", params=rotated),
        Case(pattern="one-pass", caller="browser", dependency="independent", params=rotated),
        Case(pattern="one-pass", caller="browser", params=rotated),
    ]
    # None stands for the base case, which does not have the parameter.
    axes: dict[str, Sequence[Scalar | None]] = {
        "pattern": ["one-pass", "fused", "per-pass", "wait-each", "read-each"],
        "wait": [None, "map"],
    }
    return Space(base, axes, extra, lambda case: is_accepted(case_spec, case))
