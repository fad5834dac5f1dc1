"""The steps that torch runs: adding 1 to 256 int32, and the published training step of a small
network.
"""

from __future__ import annotations

import abc
import bisect
import copy
import dataclasses
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
_MOST_ROUNDING = 1e-3
"""The largest relative difference of losses, or of sums of losses, that rounding explains. Chosen,
not measured: float32 rounds to 1e-7, and sums of other libraries differ somewhat more.
"""


class _InferenceMode:
    entered: Any = None
    """The inference mode that this thread has entered, as its context manager; None outside."""


def set_autograd_mode(mode: Mode) -> None:
    """Set whether torch records operations for gradients in this thread: ``grad``, or ``no_grad``
    or ``inference``, in which torch does less. Each chain calls this before its steps run, since
    another chain of the same process may have set another mode.

    torch's inference mode is a context manager, but here it is no ``with`` block: it is entered
    once and left only for another mode. A chain that left it when it closes would take it from the
    chains that are still open.
    """
    # ``entered``: the context manager of the inference mode while that is set, else None.
    if mode == "inference":
        if _InferenceMode.entered is None:
            _InferenceMode.entered = torch.inference_mode()
            _InferenceMode.entered.__enter__()
        return
    if _InferenceMode.entered is not None:
        # Without an exception (three times None). ``grad`` and ``no_grad`` are a flag of the
        # thread.
        _InferenceMode.entered.__exit__(None, None, None)
        _InferenceMode.entered = None
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
    """The step that adds 1 to 256 int32 on a device, so that the values (``values``) tell how often
    it ran. ``number=False``: 1 is an existing 0-dimensional CPU tensor, ``one`` in the name.
    ``in_place=False``: each step allocates its result.
    """

    precision = "int32"
    launches = 1

    def __init__(
        self, device: Any, *, in_place: bool = True, number: bool = True, mode: Mode = "inference"
    ) -> None:
        """Put the values on the device, in the autograd mode in which the steps will run: a tensor
        that is made in inference mode cannot be used in every other mode.
        """
        set_autograd_mode(mode)
        self.mode = mode
        self.in_place = in_place
        self.values = torch.from_numpy(start_values()).to(device, copy=True)
        self.operand: Any = 1 if number else torch.tensor(1, dtype=torch.int32)
        operand = "1" if number else "one"
        self.name = f"x.add_({operand})" if in_place else f"x = x + {operand}"
        # Of a step in place; the loop of one that allocates is ``_add_allocating``.
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
        """A function ``loop(n)`` that runs the step n times. It is timed: so it calls nothing but
        torch, and looks up no attribute of this object in a step.
        """
        if not self.in_place:
            return self._add_allocating
        # Found once, and local, which Python reads fastest.
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
    """The step of a small neural network, 1024-2048-2048-10, on random data: training, or only the
    loss (``train=False``). Batch 256, or with ``varying`` several sizes in turn; cross entropy,
    float32. Every step adds to a sum on the device, which tells how many steps ran: 1 in training,
    else its loss, because the sum of n losses is known.

    A training step is ``zero_grad``, forward, loss, backward and ``Adam.step`` with torch's
    defaults.
    """

    precision = "float32"
    launches = 64

    def __init__(self, device: Any, *, train: bool, varying: bool) -> None:
        """Put network and batches on the device, and compute the loss of each batch before the
        first step. Raises ``Unverified`` if the first loss is not that of float64 on the CPU.
        """
        set_autograd_mode("grad")  # tensors of inference mode could not be trained
        # Network and data, the same for all chains and on every machine, and the loss in float64.
        material = _material()
        inputs = material.inputs.to(device)
        targets = material.targets.to(device)
        self._model = copy.deepcopy(material.model).to(device)
        self._loss_of = torch.nn.functional.cross_entropy
        self._optimizer = torch.optim.Adam(self._model.parameters())

        # Every batch is the first rows of the same data.
        sizes = _VARYING_BATCHES if varying else (_BATCH,)
        batches = [(inputs[:size].clone(), targets[:size].clone()) for size in sizes]
        # Each call gives the next batch, and after the last one the first again.
        self._next = itertools.cycle(batches).__next__

        if train:
            self.mode = "grad"
            self.name = "zero_grad, forward, cross entropy, backward, Adam.step"
            self.step = self._train
            # It counts the steps.
            kind_of_sum = torch.int32
        else:
            self.mode = "inference"
            self.name = "forward, cross entropy"
            self.step = self._forward
            # It adds up losses. MPS has no float64.
            kind_of_sum = torch.float32 if device.type == "mps" else torch.float64
        self._sum = torch.zeros((), dtype=kind_of_sum, device=device)

        # What the losses are before any training; no step has run yet.
        set_autograd_mode("inference")
        losses = [float(self._loss_of(self._model(x), y)) for x, y in batches]
        # The first batch has all rows, as the reference in float64 has.
        reference = material.first_loss
        # ``_MOST_ROUNDING``: the largest relative difference that rounding explains, a thousandth.
        if abs(losses[0] - reference) > _MOST_ROUNDING * reference:
            raise Unverified(because("first-loss-differs", loss=losses[0], reference=reference))
        # For ``_steps_of_losses``: the sum of the first loss, of the first two, and so on.
        self._sums_of_losses = list(itertools.accumulate(losses))
        self.loss: Any = None

    def value_reader(self, read: Callable[[Any], object]) -> Action:
        """A function that calls ``read`` with the latest loss."""
        return lambda: read(self.loss)

    def executed(self) -> int:
        """How many steps have run, from the sum to which each step on the device added: 1 in
        training, else its loss. Raises ``Unverified`` if losses are wrong.
        """
        total = float(self._sum)
        is_training = self.mode == "grad"
        if not is_training:
            return self._steps_of_losses(total)
        # The count alone would not show that training broke. ``loss``: that of the latest step;
        # None if none has run.
        if self.loss is not None and not bool(self.loss.isfinite()):
            raise Unverified(because("loss-is-no-number", loss=float(self.loss)))
        return int(total)  # each training step added 1

    def _steps_of_losses(self, total: float) -> int:
        """After how many steps without training the sum of their losses is ``total``.

        The weights stay the same, and the steps take the batches in turn. So each batch always has
        the same loss, and the sum grows by the same amounts in each cycle of batches: ``total`` is
        the sum of some whole cycles, and of the first batches of one more. Raises ``Unverified`` if
        ``total`` is no such sum.
        """
        sums = self._sums_of_losses  # of the first batch, the first two, ..., a whole cycle
        first_loss = sums[0]
        # Rounding makes the total a little too small or too large. Half a loss more puts it in the
        # middle between two sums, so that the division does not give one step too few.
        # The batches are rows of the same data, so their losses are about equal: half of the first
        # loss is about half of any.
        cycles, rest = divmod(total + first_loss / 2, sums[-1])
        # How many of the sums are at most the rest: so many batches of the last cycle have run.
        batches = bisect.bisect_right(sums, rest)
        steps = int(cycles) * len(sums) + batches

        expected = cycles * sums[-1]
        if batches:
            expected += sums[batches - 1]
        difference = abs(expected - total)
        # Rounding alone may explain the difference. Beyond either limit a step added a wrong loss:
        # beyond a thousandth of the total (of 1 for smaller totals), the stricter limit up to about
        # 250 steps; or beyond a quarter of a loss, where the total is no longer clearly nearer to
        # this number of steps than to the next.
        may_be_another_number = difference > 0.25 * first_loss
        if difference > _MOST_ROUNDING * max(total, 1.0) or may_be_another_number:
            raise Unverified(because("losses-differ", total=total, steps=steps, expected=expected))
        return steps

    def _train(self) -> None:
        """One training step on the next batch, with 1 added to the sum that counts steps on the
        device.
        """
        x, y = self._next()
        self._optimizer.zero_grad()
        # Kept for ``executed``, which looks whether it is a number.
        self.loss = loss = self._loss_of(self._model(x), y)
        loss.backward()
        self._optimizer.step()
        self._sum.add_(1)

    def _forward(self) -> None:
        x, y = self._next()
        self.loss = loss = self._loss_of(self._model(x), y)
        self._sum.add_(loss)


@dataclasses.dataclass(frozen=True)
class _Material:
    """A network, its inputs and its targets on the CPU, and its first loss in float64."""

    model: Any
    inputs: Any
    targets: Any
    first_loss: float


@functools.cache
def _material() -> _Material:
    """The network and data of all chains, made once, with the same random numbers on every machine;
    and the first loss in float64, with which a device is compared.
    """
    with torch.random.fork_rng(devices=[]):  # leaves the random generator as it was
        torch.manual_seed(1)
        # One layer for each two neighbours of the widths 1024, 2048, 2048, 10.
        first, second, third = (torch.nn.Linear(*widths) for widths in itertools.pairwise(_WIDTHS))
        model = torch.nn.Sequential(first, torch.nn.ReLU(), second, torch.nn.ReLU(), third)
        inputs = torch.randn(_BATCH, _WIDTHS[0])
        targets = torch.randint(_WIDTHS[-1], (_BATCH,))
    # Only the loss is needed, no gradients.
    with torch.no_grad():
        exact_model = copy.deepcopy(model).double()
        loss = torch.nn.functional.cross_entropy(exact_model(inputs.double()), targets)
    return _Material(model, inputs, targets, float(loss))
