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
        targets = [torch_target(torch, self.name, "cpu")]
        # HIP devices are called cuda in torch.
        for kind in ("cuda", "xpu"):
            targets += targets_of_kind(torch, self.name, kind)
        if torch.backends.mps.is_available():
            targets.append(torch_target(torch, self.name, "mps"))
        return targets

    def space(self, target: Target) -> Space:
        """The cases, ways to run operations, that are measured: one addition in place (``base``);
        with other operands, results and waits; with reads and waits after steps; and the ways
        (arms) to run workloads. Every run measures the ``early`` ones: both callers, Python
        (``binding``) and compiled code (``native``), and the usual read and wait.
        """
        # The type of the device as torch names it, such as ``cuda``.
        kind = _DEVICE_TYPES[target.api]
        on_cpu = target.api == "CPU"
        # On the CPU there is nothing to wait for.
        wait: dict[str, Scalar] = {} if on_cpu else {"wait": TORCH_WAITS[kind][0]}
        params: dict[str, Scalar] = {"alloc": "in-place", "operand": "number", **wait}
        base = Case(pattern="per-submit", unit="launch", params=params)

        # Compiled code can add only a tensor. So Python adds one too, for the comparison.
        with_tensor = vary(base, "operand", "tensor")
        of_both_callers = [
            vary(with_tensor, "caller", "binding"),
            vary(with_tensor, "caller", "native"),
        ]
        # The usual read and the usual wait, after each addition.
        after_each = [_with_action(base, action, 1) for action in _main_actions(kind)]
        extra = [vary(case, "alloc", "allocating") for case in of_both_callers]
        # The first wait is that of the base.
        extra += [vary(base, "wait", name) for name in TORCH_WAITS[kind][1:]]
        extra += _synchronisations(base, kind, wait)
        without_workloads = Space(
            base, {"alloc": ["allocating"]}, extra, early=[*of_both_callers, *after_each]
        )

        # ``separate``: a step is several operations; ``library``: it is one of torch.
        eager = WorkloadArm("per-submit", bodies=("separate", "library"), early=True)
        # ``hybrid``: steps on the device and on the host in turn. ``fits``: for workloads on which
        # host and device are compared (``host_works``), and those with a single way to run a step
        # (no ``bodies``).
        in_turn = WorkloadArm("hybrid", fits=lambda w: w.host_works or not w.bodies)
        arms = [eager, in_turn]
        if on_cpu:
            # Where host and device are compared, the host runs on one thread and on all.
            all_threads: dict[str, Scalar] = {"threads": "all"}
            arms.append(WorkloadArm("per-submit", all_threads, fits=lambda w: w.host_works))
        return with_workloads(without_workloads, arms, software=on_cpu)

    def open(self, target: Target, case: Case) -> Chain:
        """The chain, n units of work in a row, that measures the case on the device of the target:
        a workload if the case has ``elements``, else n steps of an addition or a network. The
        caller, and the parameter ``sync`` for an action of the host after steps, select the kind.
        """
        torch = import_torch(self.mend)
        from overhead.probes.torch import bodies, chains, workload

        if "elements" in case.params:
            return workload.open_case(str(target.options["device"]), case)

        torch.set_num_threads(1)
        device = chains.select_device(str(target.options["device"]))
        params = case.params
        wait = str(params.get("wait", ""))
        # What a step is: an addition, or a pass through a small network.
        body: bodies.Body
        if case.workload == "step":
            body = bodies.AddOne(
                device,
                in_place=params["alloc"] == "in-place",
                number=params["operand"] == "number",
            )
        else:
            body = bodies.NetworkStep(
                device,
                train=case.workload == "mlp-train",
                # Batches of one size, or of several in turn.
                varying=params["shapes"] == "varying",
            )
        if case.caller == "native":
            # The compiled loop has no other operation than the addition of a tensor.
            if not isinstance(body, bodies.AddOne) or params["operand"] != "tensor":
                raise Unsupported(because("native-caller-adds-tensor"))
            # The same addition from a compiled loop.
            return chains.NativeEager(device, body, wait)
        # A wait or a read of the host (``sync``) after every so many steps.
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


def _main_actions(kind: str) -> list[str]:
    """The usual read and the usual wait on a device of this type; a CPU has no wait."""
    return [*READS[kind][:1], *TORCH_WAITS[kind][:1]]


def _synchronisations(base: Case, kind: str, wait: dict[str, Scalar]) -> list[Case]:
    """The cases with a synchronisation, a read or a wait of the host after each step or after every
    few steps: of the addition (``base``), and on a GPU of training and inference of a network too.
    ``kind``: the type of the device. ``wait``: the parameter of the wait after a whole chain.
    """
    # The usual read and the usual wait; a CPU has no wait.
    main = _main_actions(kind)
    networks = [] if kind == "cpu" else _networks(wait)
    cases = []
    for network in networks:
        cases.append(network)  # without a synchronisation, for the comparison
        cases += [_with_action(network, action, 1) for action in main]

    cases += _after_steps(base, kind, (10, 100))
    if networks:
        # A training step takes about 1 ms. Longer units would not fit into a short run.
        training = networks[0]
        cases += _after_steps(training, kind, (4,))
    return cases


def _networks(wait: dict[str, Scalar]) -> list[Case]:
    """The cases of a small network without reads and waits between steps: training and inference,
    with batches of one size or of several in turn. The first trains with fixed shapes. ``wait``:
    the parameter of the wait after a whole chain.
    """
    cases = []
    for shapes in ("fixed", "varying"):
        for name in ("mlp-train", "mlp-forward"):
            params: dict[str, Scalar] = {**wait, "shapes": shapes}
            # ``mlp``: the network. ``mlp-forward`` computes its loss alone.
            cases.append(Case(pattern="per-submit", unit="step", workload=name, params=params))
    return cases


def _after_steps(step: Case, kind: str, numbers: tuple[int, ...]) -> list[Case]:
    """The cases of a step with an action of the host, a read or a wait: every action after each
    step, and the usual ones after these numbers of steps.
    """
    cases = [_with_action(step, action, 1) for action in (*READS[kind], *TORCH_WAITS[kind])]
    # The usual read and the usual wait.
    for action in _main_actions(kind):
        cases += [_with_action(step, action, every) for every in numbers]
    return cases


def _with_action(case: Case, action: str, every: int) -> Case:
    """The case of a step, with the action of the host (a read or a wait) after every so many steps,
    which together are a unit.
    """
    params = {**case.params, "sync": action, "every": every}
    # ``_PLURAL``: the plural of a unit's name, as in "10 launches".
    unit = case.unit if every == 1 else f"{every} {_PLURAL[case.unit]}"
    pattern: Pattern = "read-each" if is_read(action) else "wait-each"
    return Case(pattern=pattern, unit=unit, workload=case.workload, params=params)
