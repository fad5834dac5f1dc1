"""Eager PyTorch: one operation on 256 int32, on the CPU or on any accelerator that the installed torch supports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from overhead.errors import install
from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, Unsupported, vary
from overhead.probes.torch.targets import import_torch, torch_target
from overhead.results import Case, Pattern, Scalar, Target
from overhead.workloads import OPERATIONS


@register
class TorchProbe(Probe):
    """PyTorch in inference mode with one CPU thread.

    The in-place operation is ``x.add_(1)``; the allocating operation is ``x = x + 1``. ``operand=tensor`` adds an
    existing 0-dimensional tensor, which the native caller can do too. ``sync`` is an action of the host after every
    ``every`` steps. A unit is then these steps and the action. The workload ``operations`` is a list of common
    operations, one case each.
    """

    name = "torch"
    title = "PyTorch eager"
    mend = install("torch")
    distributions = ("torch",)

    def targets(self) -> list[Target]:
        torch = import_torch(self.mend)
        kinds = [kind for kind in ("cuda", "xpu") if getattr(torch, kind).is_available()]
        devices = [f"{kind}:{index}" for kind in kinds for index in range(getattr(torch, kind).device_count())]
        devices += ["mps"] if torch.backends.mps.is_available() else []
        return [torch_target(torch, self.name, device) for device in ["cpu", *devices]]

    def space(self, target: Target) -> Space:
        from overhead.probes.torch.waits import TORCH_WAITS

        kind = _DEVICE_TYPES[target.api]
        waits = TORCH_WAITS[kind]
        params: dict[str, Scalar] = {"alloc": "in-place", "operand": "number", **({"wait": waits[0]} if waits else {})}
        base = Case(pattern="per-submit", unit="launch", params=params)
        at_the_end = [vary(base, "wait", wait) for wait in waits[1:]]
        in_place, allocating = _python_and_native(base, "in-place"), _python_and_native(base, "allocating")
        first, others = _main_synchronisations(base, kind), _all_synchronisations(base, kind)
        extra = [*in_place, *first, *allocating, *at_the_end, *others, *_operations(waits)]
        from overhead.probes.common.workload_arms import IN_TURN, IN_TURN_TOO, eager, on_all_threads
        from overhead.probes.workload_chain import with_workloads

        star = Space(base, {"alloc": ["allocating"]}, extra)
        cpu = target.api == "CPU"
        arms = [eager("separate", "library"), IN_TURN, *([on_all_threads("per-submit")] if cpu else [])]
        late = [*([] if cpu else [on_all_threads("hybrid")]), IN_TURN_TOO]
        return with_workloads(star, arms, software=cpu, late=late)

    def open(self, target: Target, case: Case) -> Chain:
        torch = import_torch(self.mend)
        if "elements" in case.params:
            from overhead.probes.torch import workload

            return workload.open_case(str(target.options["device"]), case)
        from overhead.probes.torch import bodies, chains, waits

        torch.set_num_threads(1)
        device = torch.device(target.options["device"])
        if device.index is not None:
            getattr(torch, device.type).set_device(device)
        wait_name = str(case.params.get("wait", ""))
        wait = waits.wait(device, wait_name)
        spins = device.type != "cpu" and wait_name != "event-blocking"
        if case.workload == OPERATIONS:
            from overhead.probes.torch.operations import OperationBody

            body: Any = OperationBody(device, str(case.params["operation"]))
        elif case.workload != "step":
            varying = case.params["shapes"] == "varying"
            body = bodies.NetworkStep(device, train=case.workload == "mlp-train", varying=varying)
        else:
            number, in_place = case.params["operand"] == "number", case.params["alloc"] == "in-place"
            body = bodies.AddOne(device, in_place=in_place, number=number)
        if case.caller == "native":
            if case.params.get("operand") != "tensor":
                raise Unsupported("the native caller adds a tensor made beforehand, one operation a step")
            return chains.NativeEager(device, body, wait, spins=spins)
        if "sync" not in case.params:
            return chains.Eager(device, body, wait, spins=spins)
        sync, every = str(case.params["sync"]), int(case.params["every"])
        action = waits.action(device, sync, body.reading)
        acts = waits.waits(sync)
        return chains.Acting(device, body, wait, spins=spins, action=action, every=every, waits=acts)


_DEVICE_TYPES: dict[str, str] = {"CPU": "cpu", "CUDA": "cuda", "HIP": "cuda", "LevelZero": "xpu", "MPS": "mps"}


_PLURAL = {"launch": "launches", "step": "steps"}


def _python_and_native(base: Case, alloc: str) -> list[Case]:
    """Cases that run the same operation from Python and from a compiled loop."""
    tensor = vary(vary(base, "operand", "tensor"), "alloc", alloc)
    return [vary(tensor, "caller", caller) for caller in ("binding", "native")]


def _operations(waits: Sequence[str]) -> list[Case]:
    """A case for each common operation."""
    from overhead.probes.torch.operations import TORCH_OPERATIONS

    wait: dict[str, Scalar] = {"wait": waits[0]} if waits else {}
    params: list[dict[str, Scalar]] = [{"operation": name, **wait} for name in TORCH_OPERATIONS]
    return [Case(pattern="per-submit", unit="operation", workload=OPERATIONS, params=own) for own in params]


def _main_synchronisations(base: Case, kind: str) -> list[Case]:
    """Cases with one read or one wait after every step, the most important first.

    They use the plain step and, on a GPU, also the steps of the networks.
    """
    return [
        case
        for step in (base, *(_network(base, name, "fixed") for name in _networks(kind)))
        for case in (step, *(_with_action(step, sync, 1) for sync in _read_and_wait(kind)))
    ]


def _all_synchronisations(base: Case, kind: str) -> list[Case]:
    """Cases with each kind of synchronisation after every step, some after every k steps, and some varying shapes."""
    from overhead.probes.torch.waits import COPIES, READS, TORCH_WAITS

    cases = []
    # A training step takes about 1 ms. Longer units would not fit into a short run.
    for step, rhythms in ((base, (10, 100)), *((_network(base, name, "fixed"), (4,)) for name in _networks(kind)[:1])):
        cases += [_with_action(step, sync, 1) for sync in (*READS[kind], *TORCH_WAITS[kind], *COPIES[kind])]
        cases += [_with_action(step, sync, every) for sync in _read_and_wait(kind) for every in rhythms]
    varying = [_network(base, name, "varying") for name in _networks(kind)]
    for step in varying:
        cases += [step, *(_with_action(step, sync, 1) for sync in _read_and_wait(kind))]
    return cases


def _read_and_wait(kind: str) -> tuple[str, ...]:
    """The names of one read and one wait for a device type."""
    from overhead.probes.torch.waits import READS, TORCH_WAITS

    return (*READS[kind][:1], *TORCH_WAITS[kind][:1])


def _networks(kind: str) -> tuple[str, ...]:
    """The names of the network workloads. Empty for the CPU, where a step takes 0.1 s and nothing is asynchronous."""
    return () if kind == "cpu" else ("mlp-train", "mlp-forward")


def _network(base: Case, workload: str, shapes: str) -> Case:
    params: dict[str, Scalar] = {"wait": base.params["wait"], "shapes": shapes}
    return Case(pattern="per-submit", unit="step", workload=workload, params=params)


def _with_action(case: Case, sync: str, every: int) -> Case:
    from overhead.probes.torch.waits import reads, waits

    params = {**case.params, "sync": sync, "every": every}
    unit = case.unit if every == 1 else f"{every} {_PLURAL[case.unit]}"
    pattern: Pattern = "read-each" if reads(sync) else "wait-each" if waits(sync) else "per-submit"
    return Case(pattern=pattern, unit=unit, workload=case.workload, params=params)
