"""Eager PyTorch: one operation on 256 int32, on the CPU or on any accelerator that the installed
torch supports.
"""

from __future__ import annotations

from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, Unsupported, vary
from overhead.probes.torch.devices import (
    READS,
    TORCH_WAITS,
    import_torch,
    is_read,
    targets_of_kind,
    torch_target,
)
from overhead.probes.workload_chain import WorkloadArm, with_workloads
from overhead.results import Case, Pattern, Scalar, Target, because


@register
class TorchProbe(Probe):
    """PyTorch in inference mode with one CPU thread.

    The in-place operation is ``x.add_(1)``; the allocating operation is ``x = x + 1``.
    ``operand=tensor`` adds an existing 0-dimensional tensor, which the native caller can do too.
    ``sync`` is an action of the host after every ``every`` steps. A unit is then these steps and
    the action.
    """

    name = "torch"
    title = "PyTorch eager"
    mend = because("install-extras", extras="torch")
    distributions = ("torch",)
    same_calls = True

    def targets(self) -> list[Target]:
        """The CPU, then every CUDA, HIP, XPU or MPS device that torch can use."""
        torch = import_torch(self.mend)
        counted = [
            target for kind in ("cuda", "xpu") for target in targets_of_kind(torch, self.name, kind)
        ]
        names = ["mps"] if torch.backends.mps.is_available() else []
        return [
            torch_target(torch, self.name, "cpu"),
            *counted,
            *(torch_target(torch, self.name, n) for n in names),
        ]

    def space(self, target: Target) -> Space:
        """The cases of one addition, of reads and waits after steps, and of the workloads."""
        kind, cpu = _DEVICE_TYPES[target.api], target.api == "CPU"
        wait: dict[str, Scalar] = {} if cpu else {"wait": TORCH_WAITS[kind][0]}
        base = Case(
            pattern="per-submit",
            unit="launch",
            params={"alloc": "in-place", "operand": "number", **wait},
        )
        at_the_end = [vary(base, "wait", name) for name in TORCH_WAITS[kind][1:]]
        acts, others = _synchronisations(base, kind, wait)
        both = [
            vary(vary(base, "operand", "tensor"), "caller", caller)
            for caller in ("binding", "native")
        ]
        extra = [*(vary(one, "alloc", "allocating") for one in both), *at_the_end, *others]
        star = Space(base, {"alloc": ["allocating"]}, extra, early=[*both, *acts])
        eager = WorkloadArm("per-submit", bodies=("separate", "library"), early=True)
        in_turn = WorkloadArm("hybrid", fits=lambda w: w.host_works or not w.bodies)
        all_threads = WorkloadArm("per-submit", {"threads": "all"}, fits=lambda w: w.host_works)
        arms = [eager, in_turn, *([all_threads] if cpu else [])]
        return with_workloads(star, arms, software=cpu)

    def open(self, target: Target, case: Case) -> Chain:
        """The chain of the case, on the device of the target."""
        torch = import_torch(self.mend)
        from overhead.probes.torch import bodies, chains, workload

        if "elements" in case.params:
            return workload.open_case(str(target.options["device"]), case)

        torch.set_num_threads(1)
        device, params = chains.select_device(str(target.options["device"])), case.params
        wait = str(params.get("wait", ""))
        body: bodies.Body
        if case.workload != "step":
            train, varying = case.workload == "mlp-train", params["shapes"] == "varying"
            body = bodies.NetworkStep(device, train=train, varying=varying)
        else:
            number, in_place = params["operand"] == "number", params["alloc"] == "in-place"
            body = bodies.AddOne(device, in_place=in_place, number=number)
        if case.caller == "native":
            if not isinstance(body, bodies.AddOne) or params["operand"] != "tensor":
                raise Unsupported(because("native-caller-adds-tensor"))
            return chains.NativeEager(device, body, wait)
        if "sync" in params:
            return chains.EagerWithAction(
                device, body, wait, sync=str(params["sync"]), every=int(params["every"])
            )
        return chains.Eager(device, body, wait)


_DEVICE_TYPES: dict[str, str] = {
    "CPU": "cpu",
    "CUDA": "cuda",
    "HIP": "cuda",
    "LevelZero": "xpu",
    "MPS": "mps",
}
_PLURAL = {"launch": "launches", "step": "steps"}


def _synchronisations(
    base: Case, kind: str, wait: dict[str, Scalar]
) -> tuple[list[Case], list[Case]]:
    """The step with a read or a wait after each; then all others: networks (on a GPU), every kind,
    other rhythms.
    """
    names = () if kind == "cpu" else ("mlp-train", "mlp-forward")
    networks = [
        Case(pattern="per-submit", unit="step", workload=name, params={**wait, "shapes": shapes})
        for shapes in ("fixed", "varying")
        for name in names
    ]
    main, every_kind = (
        (*READS[kind][:1], *TORCH_WAITS[kind][:1]),
        (*READS[kind], *TORCH_WAITS[kind]),
    )
    others = [
        case for one in networks for case in (one, *(_with_action(one, sync, 1) for sync in main))
    ]
    # A training step takes about 1 ms. Longer units would not fit into a short run.
    for step, rhythms in ((base, (10, 100)), *((network, (4,)) for network in networks[:1])):
        others += [_with_action(step, sync, 1) for sync in every_kind]
        others += [_with_action(step, sync, every) for sync in main for every in rhythms]
    return [_with_action(base, sync, 1) for sync in main], others


def _with_action(case: Case, sync: str, every: int) -> Case:
    params = {**case.params, "sync": sync, "every": every}
    unit = case.unit if every == 1 else f"{every} {_PLURAL[case.unit]}"
    pattern: Pattern = "read-each" if is_read(sync) else "wait-each"
    return Case(pattern=pattern, unit=unit, workload=case.workload, params=params)
