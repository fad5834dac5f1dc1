"""A chain whose sampling loop runs in the page, whatever its units are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from overhead.probes._support.browser import identity, wire
from overhead.probes._support.browser.session import BrowserSession
from overhead.probes.base import Chain, Unsupported, Unverified
from overhead.results import Overlap, Pattern

CHUNK = 16
"""Samples asked for at a time, so that an answer never takes long."""
LATENT = frozenset({"wait-each", "read-each"})
_PIPELINED = frozenset({"per-submit", "per-k"})
_LEAST_NS = {"chromium": 40_000_000, "firefox": 150_000_000}
_POLL_NS = {"firefox": 100_000_000}
"""Chromium looks for finished work about every 2 ms, Firefox every 100 ms, where less than a stair is no rise."""
_MAX_N = {"fused": 1 << 24, "wait-each": 64, "read-each": 64}


class InPage(Chain):
    """``sample`` runs the whole loop in the page; the single verbs exist for what is not timed."""

    def __init__(self, session: BrowserSession, pattern: Pattern) -> None:
        self.session, self.number = session, session.next_chain()
        self.overlap: Overlap = "pipelined" if pattern in _PIPELINED else "serial"
        self.latency = self.synchronous = pattern in LATENT
        self.max_n = _MAX_N.get(pattern, 1 << 18)
        self.clock_step_ns = session.page.clock_step_ns
        self.least_ns = _LEAST_NS.get(session.browser.kind, 0)
        self.poll_ns = 0 if self.latency else _POLL_NS.get(session.browser.kind, 0)
        self.flags = identity.flags(session.page)
        self._warms = not self.poll_ns
        self._pending = 0

    def sample(self, ns: Sequence[int], cpu: bool = False) -> list[list[int]]:
        """``[n, issue_ns, total_ns]`` for each n. The page cannot read a CPU clock, so ``cpu`` adds nothing."""
        return self.sample_idle(ns, 0.0)

    def units(self, ns: Sequence[int]) -> int:
        """Units that ``sample`` runs for this list."""
        return sum(ns) + (len(ns) if self._warms else 0)

    def sample_idle(self, ns: Sequence[int], idle_ms: float) -> list[list[int]]:
        """The same, each window opened after ``idle_ms`` in which the page slept."""
        rows: list[list[int]] = []
        for i in range(0, len(ns), CHUNK):
            asked = list(ns[i : i + CHUNK])
            answer = self.ask("time", ns=asked, idle_ms=idle_ms, warm=self._warms)
            if [row[0] for row in answer.samples] != asked:
                raise Unverified("the page answered for other n than it was asked for")
            rows += answer.samples
            if not answer.visible and "hidden-page" not in self.flags:
                self.flags = [*self.flags, "hidden-page"]
        return rows

    def issue(self, n: int) -> None:
        self._pending += n

    def wait(self) -> None:
        """Run what was issued, untimed."""
        n, self._pending = self._pending, 0
        self.ask("run", ns=[n])

    def close(self) -> None:
        self.ask("close")

    def ask(self, do: str, **fields: Any) -> wire.PageAnswer:
        """The page's answer. Raises what the answer stands for."""
        answer = self.session.ask(do, chain=self.number, **fields)
        if answer.kind == "unverified":
            raise Unverified(answer.error)
        if answer.kind == "unsupported":
            raise Unsupported(answer.error)
        if answer.kind:
            raise RuntimeError(f"in the page: {answer.error}")
        return answer
