"""The decode workload in the page: the lowered program, with the WGSL, buffers and checks of the
native stacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from overhead.decode.chain import DecodeChain, StateValues
from overhead.decode.decoders import DECODERS, WGSL_LOGIT_TOLERANCE
from overhead.decode.lowered import LOGITS, LoweredDecode
from overhead.decode.lowering.buffers import DTYPES, first_numbers
from overhead.probes.base import Unsupported
from overhead.probes.browser import messages
from overhead.probes.browser.chain import PageChain
from overhead.probes.browser.session import BrowserSession
from overhead.probes.workload_chain import verified
from overhead.results import Case, Scalar, because

_IN_PAGE = {"per-pass": "per-k", "per-submit": "per-submit", "read-each": "read-each"}
"""The names of these patterns in the page. ``per-k`` with k = 1 is one submission with one pass for
each token.
"""


def open_case(session: BrowserSession, case: Case) -> DecodeChain:
    """A verified chain for the pattern ``per-submit``, ``per-pass`` or ``read-each``.

    Raises ``Unsupported`` or ``Unverified``.
    """
    if case.workload != DECODERS[0]:
        raise Unsupported(because("weights-too-large-for-page", workload=case.workload))
    if (
        case.pattern not in _IN_PAGE
        or case.caller != "browser"
        or case.params.get("readback", "token") != "token"
    ):
        raise Unsupported(because("no-tokens-in-page", pattern=case.pattern, caller=case.caller))
    return verified(BrowserDecode(session, case))


class BrowserDecode(PageChain, LoweredDecode):
    """A lowered decode step in the page.

    The page restores the state itself, after its warm-up token and before each window. So that
    token is not counted.
    """

    language = "wgsl"
    tolerance = WGSL_LOGIT_TOLERANCE

    def __init__(self, session: BrowserSession, case: Case) -> None:
        PageChain.__init__(self, session, case.pattern)
        LoweredDecode.__init__(self, case)
        self.overlap = "serial" if self.latency else "pipelined"
        self._logits = self.lowered.outputs[LOGITS]
        self._seen: dict[str, NDArray[Any]] = {}
        # A page reads the first buffer after every token of ``read-each``.
        self._names = sorted(self.lowered.buffers, key=lambda name: name != "token")
        spec = msgspec.convert({"pattern": _IN_PAGE[case.pattern]}, messages.CaseSpec)
        self.ask("open", case=spec, program=self._program())
        given = self.initial_values()
        arrays = {
            name: first_numbers(buffer, given.get(name))
            for name, buffer in self.lowered.buffers.items()
        }
        filled = {name: array for name, array in arrays.items() if array is not None}
        self.write(self._numbers(filled), b"".join(array.tobytes() for array in filled.values()))
        start = self.reference.after_prompt
        self.write_first = {"buffers": self._numbers(start), "data": self._raw(start)}

    def _program(self) -> messages.PageProgram:
        lowered, places = self.lowered, {name: i for i, name in enumerate(self.lowered.kernels)}
        kernels = []
        for kernel in lowered.kernels.values():
            kinds = [_kind(written=binding.written) for binding in kernel.bindings]
            kernels.append(messages.PageKernel(code=kernel.wgsl, bindings=kinds))
        entries, buffers = [], []
        for d in lowered.dispatches:
            place, own = places[d.kernel], self._numbers(d.bindings)
            entries.append(
                messages.PageEntry(name="main", groups=[*d.grid], kernel=place, buffers=own)
            )
        for name in self._names:
            kind = _kind(written=lowered.buffers[name].role != "weight")
            buffers.append(messages.PageBuffer(kind=kind, size=lowered.buffers[name].bytes))
        label = f"{self.case.workload}, {len(entries)} dispatches a token,"
        return messages.PageProgram(label=label, kernels=kernels, entries=entries, buffers=buffers)

    def _numbers(self, names: Iterable[str]) -> list[int]:
        """The numbers of these buffers in the page."""
        return [self._names.index(name) for name in names]

    def _raw(self, values: StateValues) -> bytes:
        numbers = {name: self.lowered.buffers[name].number for name in values}
        return b"".join(
            np.asarray(array, DTYPES[numbers[name]]).tobytes() for name, array in values.items()
        )

    def ask(self, do: str, **fields: Any) -> messages.PageAnswer:
        """As in ``PageChain``; what was fetched is forgotten, because the command may change it."""
        if do != "fetch":
            self._seen = {}
        return super().ask(do, **fields)

    def run_steps(self, steps: int) -> None:
        """Note this many decode steps for the next ``wait``, which runs them in the page."""
        self.issue(steps)

    def write_state(self, values: StateValues) -> None:
        """Write tensors of the state. The queue of the page puts the write before all later
        work.
        """
        self.write(self._numbers(values), self._raw(values))

    def read_numbers(self, name: str) -> NDArray[Any]:
        """Token, position or logits. All are fetched at once, because Firefox needs 100 ms for each
        fetch.
        """
        if not self._seen:
            buffers = {
                one: self.lowered.buffers[one] for one in ("token", "position", self._logits.buffer)
            }
            raw, at = (
                self.fetch_bytes(self._numbers(buffers), sum(b.bytes for b in buffers.values())),
                0,
            )
            for one, buffer in buffers.items():
                self._seen[one] = np.frombuffer(raw, DTYPES[buffer.number], buffer.count, at)
                at += buffer.bytes
        return self._seen[name]

    def units(self, ns: Sequence[int]) -> int:
        """Tokens of these samples. The warm-up tokens are not counted, because the page restores
        the state.
        """
        return sum(ns)

    def sample_idle(self, ns: Sequence[int], idle_ms: float) -> list[list[int]]:
        """As in ``PageChain``, but the tokens of each sample are counted before the next."""
        rows: list[list[int]] = []
        for n in ns:
            self.count_tokens()
            rows += super().sample_idle([n], idle_ms)
            self._counted = 0
            self.count_tokens()
        return rows

    def window(self) -> dict[str, Scalar]:
        """What was timed: submissions, passes and the kind of wait, added to those of the base
        classes.
        """
        each = (
            f"{len(self.lowered.dispatches)} per unit"
            if self.case.pattern == "per-submit"
            else "1 per unit"
        )
        wait = "mapAsync of a 4-byte copy" if self.latency else "onSubmittedWorkDone"
        return {
            **super().window(),
            "submits": each,
            "passes": each,
            "recording": "inside",
            "wait": wait,
        }


def _kind(*, written: bool) -> messages.BufferKind:
    return "storage" if written else "read-only-storage"
