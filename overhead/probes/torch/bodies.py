"""The steps that torch runs: adding 1 to 256 int32, and the published training step of a small
network.
"""

from __future__ import annotations

import abc
import bisect
import copy
import functools
import itertools
from collections.abc import Callable
from itertools import repeat
from typing import Any, Literal

import torch

from overhead.probes.base import Unverified
from overhead.probes.common.loops import Action, Issue, repeated
from overhead.probes.common.step import count_steps, start_values
from overhead.results import because

Mode = Literal["inference", "no_grad", "grad"]
_WIDTHS = (1024, 2048, 2048, 10)
"""Widths of the network: inputs, first hidden layer, second hidden layer, outputs."""
_BATCH = 256
_VARYING_BATCHES = tuple(_BATCH - 8 * i for i in range(8))
"""Batch sizes of ``shapes=varying``. The steps use them in turn."""


class _Guard:
    held: Any = None


def set_autograd_mode(mode: Mode) -> None:
    """Set the autograd mode of this thread. All chains share one guard, so they can open and close
    in any order.
    """
    if mode == "inference":
        if _Guard.held is None:
            _Guard.held = torch.inference_mode()
            _Guard.held.__enter__()
        return
    if _Guard.held is not None:
        _Guard.held.__exit__(None, None, None)
        _Guard.held = None
    torch.set_grad_enabled(mode == "grad")


class Body(abc.ABC):
    """A step on a device, which counts how often it ran.

    ``step`` runs it once. ``launches``: the kernels of a step, at most. ``mode``: the autograd mode
    that it needs.
    """

    name: str
    launches: int
    precision: str
    mode: Mode
    step: Action

    def loop(self) -> Issue:
        """A function that runs n steps."""
        return repeated(self.step)

    def value_reader(self, read: Callable[[Any], object]) -> Action:
        """A function that calls ``read`` with a one-element tensor that the latest step wrote."""
        raise NotImplementedError(f"{self.name} has no value to read")

    @abc.abstractmethod
    def executed(self) -> int:
        """The number of steps that have run, according to values on the device. Raises
        ``Unverified``.
        """


class AddOne(Body):
    """Add 1 to 256 int32 on a device. ``number=False``: 1 is an existing 0-dimensional CPU tensor,
    ``one`` in the name.

    ``in_place=False``: each step allocates its result.
    """

    precision = "int32"
    launches = 1

    def __init__(
        self, device: Any, *, in_place: bool = True, number: bool = True, mode: Mode = "inference"
    ) -> None:
        set_autograd_mode(mode)
        self.mode, self.in_place = mode, in_place
        self.values = torch.from_numpy(start_values()).to(device, copy=True)
        self.operand: Any = 1 if number else torch.tensor(1, dtype=torch.int32)
        operand = "1" if number else "one"
        self.name = f"x.add_({operand})" if in_place else f"x = x + {operand}"
        self.step = functools.partial(self.values.add_, self.operand)

    def value_reader(self, read: Callable[[Any], object]) -> Action:
        """A function that calls ``read`` with the first of the 256 values."""
        return functools.partial(read, self.values[:1])

    def executed(self) -> int:
        """The number of steps, which is what was added to each value. Raises ``Unverified`` if
        values disagree.
        """
        return count_steps(self.values.cpu().numpy())

    def loop(self) -> Issue:
        """A function that runs n steps and calls nothing but torch."""
        if not self.in_place:
            return self._add_allocating
        add, operand = self.values.add_, self.operand

        def loop(n: int) -> None:
            for _ in repeat(None, n):
                add(operand)

        return loop

    def _add_allocating(self, n: int) -> None:
        x, operand = self.values, self.operand
        for _ in repeat(None, n):
            x = x + operand
        self.values = x


class NetworkStep(Body):
    """A multilayer perceptron 1024-2048-2048-10 on random data: batch 256, cross entropy, float32.

    A training step is ``zero_grad``, forward, loss, backward and ``Adam.step`` with torch's
    defaults. Every step also adds to a counter on the device: 1 in training, or the loss without
    training, because the sum of n losses is known.
    """

    precision = "float32"
    launches = 64

    def __init__(self, device: Any, *, train: bool, varying: bool) -> None:
        set_autograd_mode("grad")
        material, reference = _material()
        model, inputs, targets = (part.to(device) for part in copy.deepcopy(material))
        self.mode = "grad" if train else "inference"
        self.name = (
            "zero_grad, forward, cross entropy, backward, Adam.step"
            if train
            else "forward, cross entropy"
        )
        self._model, self._loss_of = model, torch.nn.functional.cross_entropy
        self._optimizer = torch.optim.Adam(model.parameters())
        sizes = _VARYING_BATCHES if varying else (_BATCH,)
        batches = [(inputs[:size].clone(), targets[:size].clone()) for size in sizes]
        self._next = itertools.cycle(batches).__next__
        accuracy = torch.float32 if device.type == "mps" else torch.float64
        self._sum = torch.zeros((), dtype=torch.int32 if train else accuracy, device=device)
        set_autograd_mode("inference")
        losses = [float(self._loss_of(self._model(x), y)) for x, y in batches]
        if abs(losses[0] - reference) > 1e-3 * reference:
            raise Unverified(because("first-loss-differs", loss=losses[0], reference=reference))
        self._sums = list(itertools.accumulate(losses))
        self.loss: Any = None
        self.step = self._train if train else self._forward

    def value_reader(self, read: Callable[[Any], object]) -> Action:
        """A function that calls ``read`` with the latest loss."""
        return lambda: read(self.loss)

    def executed(self) -> int:
        """The number of steps according to the counter on the device. Raises ``Unverified`` if
        losses are wrong.
        """
        total = float(self._sum)
        if self.mode == "grad":
            if self.loss is not None and not bool(self.loss.isfinite()):
                raise Unverified(because("loss-is-no-number", loss=float(self.loss)))
            return int(total)
        rounds, rest = divmod(total + self._sums[0] / 2, self._sums[-1])
        index = bisect.bisect_right(self._sums, rest)
        found = int(rounds) * len(self._sums) + index
        expected = rounds * self._sums[-1] + (self._sums[index - 1] if index else 0.0)
        if (
            abs(expected - total) > 1e-3 * max(total, 1.0)
            or abs(expected - total) > 0.25 * self._sums[0]
        ):
            raise Unverified(because("losses-differ", total=total, steps=found, expected=expected))
        return found

    def _train(self) -> None:
        x, y = self._next()
        self._optimizer.zero_grad()
        self.loss = loss = self._loss_of(self._model(x), y)
        loss.backward()
        self._optimizer.step()
        self._sum.add_(1)

    def _forward(self) -> None:
        x, y = self._next()
        self.loss = loss = self._loss_of(self._model(x), y)
        self._sum.add_(loss)


@functools.cache
def _material() -> tuple[tuple[Any, Any, Any], float]:
    """The network, its inputs and its targets on the CPU, and the first loss in float64."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        first, second, third = (torch.nn.Linear(*widths) for widths in itertools.pairwise(_WIDTHS))
        model = torch.nn.Sequential(first, torch.nn.ReLU(), second, torch.nn.ReLU(), third)
        x, y = torch.randn(_BATCH, _WIDTHS[0]), torch.randint(_WIDTHS[-1], (_BATCH,))
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(copy.deepcopy(model).double()(x.double()), y)
    return (model, x, y), float(loss)
