"""Workloads in the page, with the same WGSL, buffers and checks as on the native stacks."""

from __future__ import annotations

import msgspec
import numpy as np

from overhead.probes.base import Unsupported
from overhead.probes.browser import identity, messages
from overhead.probes.browser.chain import PageChain
from overhead.probes.browser.session import BrowserSession
from overhead.probes.common.workload_arms import WGSL_BINDINGS, refuse_wgsl, wgsl_window
from overhead.probes.kernels import LLVMPIPE_TURNS
from overhead.probes.workload_chain import WorkChain, kernels_of, verified
from overhead.results import Case, Scalar, because
from overhead.workloads import sources
from overhead.workloads.base import Array

_STATE, _COUNTERS, _INPUTS, _STEPS = range(len(WGSL_BINDINGS))
_STEPS_BYTES = 16


def open_case(session: BrowserSession, case: Case) -> WorkChain:
    """A chain of a workload in the page, whose results were compared with NumPy's. Raises
    ``Unsupported`` if the page cannot run the case, and ``Unverified`` if the results differ.
    """
    refuse_wgsl(case)  # raises for a pattern that no kernel in WGSL has, in a page or elsewhere
    if case.caller != "browser":
        raise Unsupported(because("page-has-no-caller", caller=case.caller))
    # Raises ``Unverified``, after closing the chain, if the results differ.
    return verified(BrowserWork(session, case))


class BrowserWork(WorkChain, PageChain):
    """A workload that runs in the page, which gets buffers and WGSL and returns bytes. Only Python
    interprets the bytes.
    """

    language = "wgsl"

    def __init__(self, session: BrowserSession, case: Case) -> None:
        """Let the page compile the kernels of the workload and make its buffers, of zeros."""
        WorkChain.__init__(self, case)
        PageChain.__init__(self, session, case.pattern)
        # The WGSL, and for each dispatch of a step its kernel and number of workgroups
        # (``groups``).
        self._text, self._entries = kernels_of(self, "wgsl")
        self._max_loops = 0
        # True for every software adapter but SwiftShader, since a browser may hide the name
        # llvmpipe.
        if _may_be_llvmpipe(session.page.adapter):
            # llvmpipe silently stops a kernel after so many turns of loops. A step has ``turns`` of
            # them, so the page divides longer loops into several dispatches.
            self._max_loops = LLVMPIPE_TURNS // self.workload.turns
        if case.pattern != "fused":  # each unit is so many dispatches; fused units are a loop
            self.max_n //= len(self._entries)
        # The counters: each element has one, to which each step adds 1.
        self._zeros = np.zeros(self.elements, np.uint32)
        # The state as the kernels lay it out in memory. Here only its size matters; ``put`` sends
        # the values.
        state = sources.pack_state(self.workload, self.zeros(), self.elements)
        self._input_values = sources.pack_inputs(self.workload, self.inputs)
        # The last buffer holds the number of steps of a fused dispatch.
        self._sizes = (state.nbytes, self._zeros.nbytes, self._input_values.nbytes, _STEPS_BYTES)
        # The page needs the pattern alone; ``convert`` checks that it has it.
        spec = msgspec.convert({"pattern": case.pattern}, messages.CaseSpec)
        self.ask("open", case=spec, program=self._program())

    def _program(self) -> messages.PageProgram:
        """What the page runs, as the message to the page has it: the WGSL, the dispatches of a step
        in order, and the buffers.
        """
        dispatches = []
        for entry in self._entries:
            dispatches.append(messages.PageEntry(name=entry.name, groups=[entry.groups]))
        buffers = []
        # In the order of the bindings: state, counters, inputs, number of steps.
        for kind, size in zip(WGSL_BINDINGS, self._sizes, strict=True):
            buffers.append(messages.PageBuffer(kind=kind, size=size))
        return messages.PageProgram(
            label=f"{self.workload.name}, {self.elements:,} elements,",
            kernels=[messages.PageKernel(code=self._text)],
            entries=dispatches,
            buffers=buffers,
            # The page writes the number of steps of a fused dispatch to this buffer.
            count_buffer=_STEPS,
            max_loops=self._max_loops,
            needs=["shader-f16"] if self.workload.precision == "float16" else [],
        )

    def verify(self) -> None:
        """Send the inputs to the page, then compare its results with NumPy's. Raises ``Unverified``
        if they differ.
        """
        self.write([_INPUTS], self._input_values.tobytes())
        super().verify()

    def put(self, state: dict[str, Array]) -> None:
        """Send the state and counters of 0 to the page, and wait."""
        packed = sources.pack_state(self.workload, state, self.elements)
        self.write([_STATE], packed.tobytes())
        self.write([_COUNTERS], self._zeros.tobytes())
        self.wait()

    def fetch(self) -> tuple[dict[str, Array], Array]:
        """The state and the counters, fetched from the page."""
        state_bytes = self._sizes[_STATE]
        raw = self.fetch_bytes([_STATE, _COUNTERS], state_bytes + self._zeros.nbytes)
        packed = np.frombuffer(raw[:state_bytes], self.workload.dtype)
        counters = np.frombuffer(raw[state_bytes:], np.uint32)
        return sources.unpack_state(self.workload, packed, self.elements), counters

    def count(self) -> int:
        """The number of steps since ``put``; only the counters are fetched. Raises ``Unverified``
        if they differ.
        """
        raw = self.fetch_bytes([_COUNTERS], self._zeros.nbytes)
        return self.agreed(np.frombuffer(raw, np.uint32))

    def kernels(self) -> dict[str, str]:
        """SHA-256 of the WGSL, by file name."""
        return {f"{self.workload.name}.wgsl": sources.sha256_of(self._text)}

    def window(self) -> dict[str, Scalar]:
        """What is timed, as names and values for the results file."""
        timed = {**super().window(), **wgsl_window(self.case.pattern, self._entries)}
        if self.case.pattern == "fused" and self._max_loops:
            timed["dispatches"] = f"1 per {self._max_loops} units"
        return {**timed, "wait": "onSubmittedWorkDone", "checks": "on"}


def _may_be_llvmpipe(adapter: messages.PageAdapter | None) -> bool:
    """True for every software adapter but SwiftShader. A browser may hide the name of llvmpipe,
    which silently stops long loops.
    """
    if adapter is None or not identity.is_software(adapter):
        return False
    return "swiftshader" not in adapter.description.lower()
