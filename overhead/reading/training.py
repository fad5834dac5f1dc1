"""The training step taken apart: its forward pass, the rest of the training, and a synchronisation after it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from overhead.reading.synchronising import Synchronised
from overhead.reading.view import TargetView
from overhead.results import Value

FORWARD, WHOLE = "mlp-forward", "mlp-train"


@dataclasses.dataclass(frozen=True)
class Training:
    """A training step on one target, for one kind of shapes, with one act of the host after every step.

    ``forward``: the forward pass with the same act; ``base``: the forward pass with any act. Times in ns per step.
    """

    target: TargetView
    shapes: str
    act: str
    whole: Synchronised
    forward: Synchronised | None
    base: Synchronised | None

    @property
    def alone(self) -> Value | None:
        """The whole step without the act."""
        return self.whole.alone

    @property
    def forward_alone(self) -> Value | None:
        """The forward pass and loss without the act, in inference mode."""
        return self.base.alone if self.base else None

    @property
    def rest(self) -> Value | None:
        """What training adds to the forward pass: recording it for autograd, backward, the optimiser."""
        whole, forward = self.alone, self.forward_alone
        return None if whole is None or forward is None else whole - forward

    @property
    def share(self) -> Value | None:
        """The act's share of the step with the act, 0 to 1; None where either has no value."""
        slowdown = self.whole.slowdown
        return None if slowdown is None or slowdown.value <= 0 else slowdown.share_saved


def trainings(found: Sequence[Synchronised]) -> list[Training]:
    """Every training step with an act after each step, and its forward pass with the same act, in the file's order."""
    whole, passes = ([s for s in found if s.every == 1 and s.record.workload == name] for name in (WHOLE, FORWARD))
    forward = {(_chain(s), s.act): s for s in passes}
    base = {_chain(s): s for s in reversed(passes)}
    return [
        Training(s.target, _shapes(s), s.act, s, forward.get((_chain(s), s.act)), base.get(_chain(s))) for s in whole
    ]


def _chain(s: Synchronised) -> tuple[str, str]:
    """What a training step and its forward pass have in common; the steps alone are subtracted."""
    return s.target.key, _shapes(s)


def _shapes(s: Synchronised) -> str:
    return str(s.record.params.get("shapes", ""))
