"""Base class of the chains whose sampling loop runs in the page, for the step and for workloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from overhead.probes.base import Chain, Unsupported, Unverified
from overhead.probes.browser import identity, messages
from overhead.probes.browser.session import BrowserSession
from overhead.results import Overlap, Pattern

SAMPLES_PER_REQUEST = 16
"""Most samples that one command asks for, so that the page answers soon."""
WAITING_PATTERNS = frozenset({"wait-each", "read-each"})
_PIPELINED = frozenset({"per-submit", "per-k"})
_LEAST_RISE_NS = {"chromium": 40_000_000, "firefox": 150_000_000}
_POLL_NS = {"firefox": 100_000_000}
"""Time between two polls for finished work, for browsers where T(n) rises in steps of this time.

Chromium polls about every 2 ms.
"""
_MAX_N = {"fused": 1 << 24, "wait-each": 64, "read-each": 64}


class PageChain(Chain):
    """A chain in a browser. ``sample`` runs the whole loop there. ``issue`` and ``wait`` run units without timing.

    ``write_first``: the ``buffers`` and ``data`` that the page writes before each window, if any.
    """

    def __init__(self, session: BrowserSession, pattern: Pattern) -> None:
        self.session, self.number = session, session.next_chain()
        self.overlap: Overlap = "pipelined" if pattern in _PIPELINED else "serial"
        self.latency = self.synchronous = pattern in WAITING_PATTERNS
        self.max_n = _MAX_N.get(pattern, 1 << 18)
        self.clock_step_ns = session.page.clock_step_ns
        self.least_ns = _LEAST_RISE_NS.get(session.browser.kind, 0)
        self.poll_ns = 0 if self.latency else _POLL_NS.get(session.browser.kind, 0)
        self.flags = identity.flags(session.page)
        self._warms_up = not self.poll_ns
        self._pending = 0
        self.write_first: Mapping[str, Any] = {}

    def sample(self, ns: Sequence[int], cpu: bool = False) -> list[list[int]]:
        """``[n, issue_ns, total_ns]`` for each n. ``cpu`` is ignored, because a page cannot read a CPU clock."""
        return self.sample_idle(ns, 0.0)

    def units(self, ns: Sequence[int]) -> int:
        """The number of units that ``sample`` runs for these n, including warm-up units."""
        return sum(ns) + (len(ns) if self._warms_up else 0)

    def sample_idle(self, ns: Sequence[int], idle_ms: float) -> list[list[int]]:
        """Like ``sample``, but the page sleeps ``idle_ms`` before each window."""
        rows: list[list[int]] = []
        for i in range(0, len(ns), SAMPLES_PER_REQUEST):
            asked = list(ns[i : i + SAMPLES_PER_REQUEST])
            answer = self.ask("time", ns=asked, idle_ms=idle_ms, warm=self._warms_up, **self.write_first)
            if [row[0] for row in answer.samples] != asked:
                raise Unverified("the page answered for other n than it was asked for")
            rows += answer.samples
            if not answer.visible and "hidden-page" not in self.flags:
                self.flags = [*self.flags, "hidden-page"]
        return rows

    def issue(self, n: int) -> None:
        self._pending += n

    def wait(self) -> None:
        """Run the issued units in the page, without timing."""
        n, self._pending = self._pending, 0
        self.ask("run", ns=[n])

    def close(self) -> None:
        self.ask("close")

    def write(self, buffers: Sequence[int], raw: bytes) -> None:
        """Put bytes into the buffers of a program with these numbers, one buffer after another."""
        for at in range(0, len(raw), messages.PIECE_BYTES):
            self.ask("write", buffers=list(buffers), at=at, data=raw[at : at + messages.PIECE_BYTES])

    def fetch_bytes(self, buffers: Sequence[int], size: int) -> bytes:
        """The bytes of the buffers of a program with these numbers, ``size`` in all, after all submitted work."""
        pieces = []
        for at in range(0, size, messages.PIECE_BYTES):
            asked = min(messages.PIECE_BYTES, size - at)
            piece = self.ask("fetch", buffers=list(buffers), at=at, size=asked).data
            if len(piece) != asked:
                raise RuntimeError(f"the page gave {len(piece)} bytes, not {asked}")
            pieces.append(piece)
        return b"".join(pieces)

    def ask(self, do: str, **fields: Any) -> messages.PageAnswer:
        """Send a command and return the page's answer. Raises ``Unverified``, ``Unsupported`` or ``RuntimeError``."""
        answer = self.session.ask(do, chain=self.number, **fields)
        if answer.kind == "unverified":
            raise Unverified(answer.error)
        if answer.kind == "unsupported":
            raise Unsupported(answer.error)
        if answer.kind:
            raise RuntimeError(f"in the page: {answer.error}")
        return answer
