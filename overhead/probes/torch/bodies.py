"""The steps that torch runs: adding 1 to 256 int32, the published training step of a small network, one operation."""

from __future__ import annotations

import bisect
import copy
import functools
import itertools
from collections.abc import Callable
from itertools import repeat
from typing import Any

import torch

from overhead.probes.base import Unverified
from overhead.probes.common.loops import Action, Issue, repeated
from overhead.probes.common.statements import StatementLoop
from overhead.probes.common.step import count_steps, start_values
from overhead.probes.torch.operations import TORCH_OPERATIONS, Mode, TorchOperation

_WIDTHS = (1024, 2048, 2048, 10)
"""Widths of the network: inputs, first hidden layer, second hidden layer, outputs."""
_BATCH = 256
_VARYING_BATCHES = tuple(_BATCH - 8 * i for i in range(8))
"""Batch sizes of ``shapes=varying``. The steps use them in turn."""

_SETUP = """
generator = torch.Generator().manual_seed(1)
def random(*shape): return torch.rand(*shape, generator=generator).to(device, dtype)
x, y = random(256), random(256)
"""
_SEVERAL_LAUNCHES = 64
"""The most launches of any operation here, for the depth of the queue."""
_OPERATION_TOLERANCE = 2e-3
"""Relative: a change to float16 rounds to 5e-4, and sums of up to 16 million steps in float32 drift."""


class _Guard:
    held: Any = None


def set_autograd_mode(mode: Mode) -> None:
    """Set the autograd mode of this thread. All chains share one guard, so they can open and close in any order."""
    if mode == "inference":
        if _Guard.held is None:
            _Guard.held = torch.inference_mode()
            _Guard.held.__enter__()
        return
    if _Guard.held is not None:
        _Guard.held.__exit__(None, None, None)
        _Guard.held = None
    torch.set_grad_enabled(mode == "grad")


class AddOne:
    """Add 1 to 256 int32 on a device. If the name contains ``one``, 1 is an existing 0-dimensional CPU tensor."""

    precision = "int32"
    launches = 1

    def __init__(self, device: Any, *, in_place: bool = True, number: bool = True, mode: Mode = "inference") -> None:
        set_autograd_mode(mode)
        self.mode: Mode = mode
        self.in_place = in_place
        self.values = torch.from_numpy(start_values()).to(device, copy=True)
        self.operand: Any = 1 if number else torch.tensor(1, dtype=torch.int32)
        operand = "1" if number else "one"
        self.name = f"x.add_({operand})" if in_place else f"x = x + {operand}"
        self.step: Action = functools.partial(self.values.add_, self.operand)

    def loop(self) -> Issue:
        """A loop that runs n steps."""
        return self._add_in_place() if self.in_place else self._add_allocating

    def reading(self, read: Callable[[Any], object]) -> Action:
        """An action that calls ``read`` with one element of the values."""
        return functools.partial(read, self.values[:1])

    def executed(self) -> int:
        return count_steps(self.values.cpu().numpy())

    def _add_in_place(self) -> Issue:
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


class NetworkStep:
    """A multilayer perceptron 1024-2048-2048-10 on random data: batch 256, cross entropy, float32.

    A training step is ``zero_grad``, forward, loss, backward and ``Adam.step`` with torch's defaults. Every step also
    adds to a counter on the device: 1 in training, or the loss without training, because the sum of n losses is known.
    """

    precision = "float32"
    launches = 64

    def __init__(self, device: Any, *, train: bool, varying: bool) -> None:
        set_autograd_mode("grad")
        material, reference = _material()
        model, inputs, targets = (part.to(device) for part in copy.deepcopy(material))
        self.mode: Mode = "grad" if train else "inference"
        self.name = "zero_grad, forward, cross entropy, backward, Adam.step" if train else "forward, cross entropy"
        self._model, self._loss_of = model, torch.nn.functional.cross_entropy
        self._optimizer = torch.optim.Adam(model.parameters())
        batches = [
            (inputs[:size].clone(), targets[:size].clone()) for size in (_VARYING_BATCHES if varying else (_BATCH,))
        ]
        self._next = itertools.cycle(batches).__next__
        accuracy = torch.float32 if device.type == "mps" else torch.float64
        self._sum = torch.zeros((), dtype=torch.int32 if train else accuracy, device=device)
        set_autograd_mode("inference")
        losses = [float(self._loss_of(self._model(x), y)) for x, y in batches]
        if abs(losses[0] - reference) > 1e-3 * reference:
            raise Unverified(f"the first loss is {losses[0]}, float64 gives {reference}")
        self._sums = list(itertools.accumulate(losses))
        self.loss: Any = None
        self.step: Action = self._train if train else self._forward

    def loop(self) -> Issue:
        """A loop that runs n steps."""
        return repeated(self.step)

    def reading(self, read: Callable[[Any], object]) -> Action:
        """An action that calls ``read`` with the latest loss."""
        return lambda: read(self.loss)

    def executed(self) -> int:
        """The number of steps according to the counter on the device. Raises ``Unverified`` if losses are wrong."""
        total = float(self._sum)
        if self.mode == "grad":
            if self.loss is not None and not bool(self.loss.isfinite()):
                raise Unverified(f"the loss is {float(self.loss)}")
            return int(total)
        rounds, rest = divmod(total + self._sums[0] / 2, self._sums[-1])
        index = bisect.bisect_right(self._sums, rest)
        found = int(rounds) * len(self._sums) + index
        expected = rounds * self._sums[-1] + (self._sums[index - 1] if index else 0.0)
        if abs(expected - total) > 1e-3 * max(total, 1.0) or abs(expected - total) > 0.25 * self._sums[0]:
            raise Unverified(f"the losses add up to {total}, {found} steps give {expected}")
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
    generator = torch.Generator().manual_seed(1)
    layers: list[Any] = []
    for inputs, outputs in itertools.pairwise(_WIDTHS):
        layer = torch.nn.Linear(inputs, outputs)
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.uniform_(-(inputs**-0.5), inputs**-0.5, generator=generator)
        layers += [layer, torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    x = torch.randn(_BATCH, _WIDTHS[0], generator=generator)
    y = torch.randint(_WIDTHS[-1], (_BATCH,), generator=generator)
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(copy.deepcopy(model).double()(x.double()), y)
    return (model, x, y), float(loss)


class OperationBody:
    """An operation on a device. ``executed`` returns the calls made, after a check of the last values."""

    precision = "float32"
    launches = _SEVERAL_LAUNCHES

    def __init__(self, device: Any, name: str) -> None:
        operation = TORCH_OPERATIONS[name]
        self.mode: Mode = operation.mode
        self.name, self._operation, self._made = operation.call, operation, 0
        set_autograd_mode(self.mode)
        self._statement = _opened(operation, f"device, dtype = {str(device)!r}, torch.float32")
        self.step: Action = functools.partial(self._issue, 1)

    def loop(self) -> Issue:
        return self._issue

    def reading(self, read: Callable[[Any], object]) -> Action:
        raise NotImplementedError("an operation has no synchronisation of its own")

    def executed(self) -> int:
        """Raises ``Unverified`` if the values are not those of the last call."""
        if self._made:
            self._check()
        return self._made

    def _issue(self, n: int) -> None:
        self._made += n
        self._statement.issue(n)

    def _check(self) -> None:
        found = self._value(self._statement, self._operation.result).detach().double().cpu()
        expected = self._expected().detach().double().cpu().expand(found.shape)
        if not torch.allclose(found, expected, rtol=_OPERATION_TOLERANCE, atol=_OPERATION_TOLERANCE):
            worst = (found - expected).abs().max().item()
            raise Unverified(f"{self._operation.call}: the last values are off by {worst:.3g}")

    def _expected(self) -> Any:
        operation = self._operation
        reference = _opened(operation, "device, dtype = 'cpu', torch.float64")
        try:
            if operation.after:
                return torch.as_tensor(self._value(reference, operation.after))
            reference.issue(1)
            return self._value(reference, operation.result)
        finally:
            reference.close()

    def _value(self, statement: StatementLoop, expression: str) -> Any:
        return eval(expression, {**statement.names, "n": self._made})


def _opened(operation: TorchOperation, where: str) -> StatementLoop:
    statement = StatementLoop(operation.call, f"import torch\n{where}\n{_SETUP}\n{operation.setup}")
    statement.open()
    return statement
