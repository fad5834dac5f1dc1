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
    """A chain that decodes in the page of the session, and that was compared with float64. The
    patterns are ``per-submit``, ``per-pass`` and ``read-each``.

    Raises ``Unsupported`` for other cases, and ``Unverified`` if the logits differ.
    """
    # A page runs the tiny decoder alone, which is the first of them.
    if case.workload != DECODERS[0]:
        raise Unsupported(because("weights-too-large-for-page", workload=case.workload))
    # A page reads one buffer back, that of the token; so no logits.
    reads_token = case.params.get("readback", "token") == "token"
    if case.pattern not in _IN_PAGE or case.caller != "browser" or not reads_token:
        raise Unsupported(because("no-tokens-in-page", pattern=case.pattern, caller=case.caller))
    return verified(BrowserDecode(session, case))


class BrowserDecode(PageChain, LoweredDecode):
    """A chain whose decode step is a lowered program, a list of WebGPU dispatches, that a page of a
    browser runs. Commands and values go to and from the page as messages.

    The page itself restores the state after the prompt, after its warm-up token and before each
    sample. So the warm-up token is not counted.
    """

    language = "wgsl"
    tolerance = WGSL_LOGIT_TOLERANCE

    def __init__(self, session: BrowserSession, case: Case) -> None:
        """Send the program to the page, and then the first contents of its buffers."""
        PageChain.__init__(self, session, case.pattern)
        LoweredDecode.__init__(self, case)
        # Does the device work while the CPU issues more? Not where each token is read back.
        self.overlap = "serial" if self.latency else "pipelined"
        self._logits = self.lowered.outputs[LOGITS]
        # What was fetched since the last other command, by the name of its buffer.
        self._fetched: dict[str, NDArray[Any]] = {}
        # The names of all buffers; in the page each has its place here as its number. "token" comes
        # first (False sorts before True), because with ``read-each`` a page reads buffer 0.
        self._names = sorted(self.lowered.buffers, key=lambda name: name != "token")

        # The page uses its own name of the pattern; ``per-k`` with k = 1 is a pass for each token.
        spec = msgspec.convert({"pattern": _IN_PAGE[case.pattern]}, messages.CaseSpec)
        self.ask("open", case=spec, program=self._program())
        self._fill_buffers()
        # What the page writes before each sample: the state after the prompt, where all begin.
        # ``_numbers``: the buffers' numbers in the page; ``_raw``: their bytes, one after another.
        start = self.reference.after_prompt
        self.write_first = {"buffers": self._numbers(start), "data": self._raw(start)}

    def _fill_buffers(self) -> None:
        """Write the first contents of weights, state and constants into the buffers in the page,
        all with one write.
        """
        values = self.initial_values()
        filled: dict[str, NDArray[Any]] = {}
        for name, buffer in self.lowered.buffers.items():
            # None: the buffer starts with zeros, as the page makes it.
            numbers = first_numbers(buffer, values.get(name))
            if numbers is not None:
                filled[name] = numbers
        raw = b"".join(numbers.tobytes() for numbers in filled.values())
        self.write(self._numbers(filled), raw)

    def _program(self) -> messages.PageProgram:
        """The lowered program in the form of a message to the page: kernels, dispatches
        (``entries``) and buffers. There kernels and buffers have numbers in place of names.
        """
        lowered = self.lowered
        kernels: list[messages.PageKernel] = []
        kernel_numbers: dict[str, int] = {}
        # The page makes the layout of a kernel's bindings from these kinds, in their order.
        for name, kernel in lowered.kernels.items():
            kernel_numbers[name] = len(kernels)
            bindings = [_kind(written=binding.written) for binding in kernel.bindings]
            kernels.append(messages.PageKernel(code=kernel.wgsl, bindings=bindings))

        entries = [
            messages.PageEntry(
                name="main",  # the entry point of each kernel in WGSL
                groups=[*dispatch.grid],
                kernel=kernel_numbers[dispatch.kernel],
                buffers=self._numbers(dispatch.bindings),
            )
            for dispatch in lowered.dispatches
        ]

        buffers = []
        for name in self._names:
            # Only weights stay as they are while the program runs.
            kind = _kind(written=lowered.buffers[name].role != "weight")
            buffers.append(messages.PageBuffer(kind=kind, size=lowered.buffers[name].bytes))
        label = f"{self.case.workload}, {len(entries)} dispatches a token,"
        return messages.PageProgram(label=label, kernels=kernels, entries=entries, buffers=buffers)

    def _numbers(self, names: Iterable[str]) -> list[int]:
        """The numbers of these buffers in the page."""
        return [self._names.index(name) for name in names]

    def _raw(self, values: StateValues) -> bytes:
        """The bytes of these tensors as their buffers hold them, one after another."""
        raw = b""
        for name, array in values.items():
            dtype = DTYPES[self.lowered.buffers[name].number]
            raw += np.asarray(array, dtype).tobytes()
        return raw

    def ask(self, do: str, **fields: Any) -> messages.PageAnswer:
        """As in ``PageChain``; what was fetched is forgotten, because the command may change it."""
        if do != "fetch":
            self._fetched = {}
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
        if not self._fetched:
            self._fetch_all()
        return self._fetched[name]

    def _fetch_all(self) -> None:
        """Fetch token, position and logits from the page into ``_fetched``, all at once, because
        each fetch takes Firefox 100 ms.
        """
        names = ("token", "position", self._logits.buffer)
        buffers = {name: self.lowered.buffers[name] for name in names}
        total_bytes = sum(buffer.bytes for buffer in buffers.values())
        raw = self.fetch_bytes(self._numbers(buffers), total_bytes)

        # The page sends the bytes of the buffers one after another.
        offset = 0
        for name, buffer in buffers.items():
            dtype = DTYPES[buffer.number]
            self._fetched[name] = np.frombuffer(raw, dtype, buffer.count, offset)
            offset += buffer.bytes

    def units(self, ns: Sequence[int]) -> int:
        """Tokens of these samples. The warm-up tokens are not counted, because the page restores
        the state.
        """
        return sum(ns)

    def sample_idle(self, ns: Sequence[int], idle_ms: float) -> list[list[int]]:
        """A row ``[n, issue_ns, total_ns]`` for each n, before which the page sleeps ``idle_ms``,
        as of ``PageChain``. But the page is asked for one sample at a time: it restores the
        position before each, and so the tokens must be counted before the next.
        """
        rows: list[list[int]] = []
        # Count first what ran before: once the page has restored the position, nobody could.
        for n in ns:
            self.count_tokens()
            rows += super().sample_idle([n], idle_ms)
            # The page has restored the state before the sample.
            self._counted_since_restore = 0
            self.count_tokens()
        return rows

    def window(self) -> dict[str, Scalar]:
        """Facts for the record on what was timed: submissions, passes and the kind of wait, added
        to the facts of the base classes.
        """
        # Per token: one submission with one pass, or with ``per-submit`` one of each per dispatch.
        per_unit = 1
        if self.case.pattern == "per-submit":
            per_unit = len(self.lowered.dispatches)
        return {
            **super().window(),
            "submits": f"{per_unit} per unit",
            "passes": f"{per_unit} per unit",
            "recording": "inside",  # commands are recorded within the timed window
            "wait": "mapAsync of a 4-byte copy" if self.latency else "onSubmittedWorkDone",
        }


def _kind(*, written: bool) -> messages.BufferKind:
    return "storage" if written else "read-only-storage"
