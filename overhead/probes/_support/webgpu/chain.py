"""A WebGPU chain: one case open on a device."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from overhead.probes._support.common import native_loop
from overhead.probes._support.common.loop_text import Issue, Script, Stages, compile_python, compile_python_stages
from overhead.probes._support.webgpu import callers
from overhead.probes._support.webgpu.case import GROUPS, Recipe, steps
from overhead.probes._support.webgpu.device_time import DeviceClock, wait_spins
from overhead.probes._support.webgpu.setup import StepSetup, session
from overhead.probes.base import Chain, DeviceTime, Unsupported, Unverified
from overhead.probes.kernels import LLVMPIPE_TURNS, lcg
from overhead.results import Case, Scalar, Target

Wait = Callable[[], None]


class WebGpuChain(Chain):
    """``issue`` and ``wait`` are bound at open to the cheapest callables there are."""

    def __init__(self, target: Target, case: Case) -> None:
        self.recipe = recipe = Recipe.of(case)
        self.session = session(target, recipe)
        self.library = self.session.library
        self.unit = case.unit
        self.library.forget_errors()
        self.rig = StepSetup(self.session, recipe)
        self.executes = target.executes
        self.overlap = recipe.overlap
        self.latency = self.synchronous = recipe.waits_each
        self.max_n = _max_n(recipe, target)
        self._wait_name, wait = self._waiter()
        self._loop = self._rendered(wait)
        self.wait_spins = self.executes and wait_spins(self.session)
        self.wait = wait  # type: ignore[method-assign]
        self.issue = self._compiled()  # type: ignore[method-assign, assignment]
        self._count = -1
        self._at = [0] * recipe.buffers
        self._total = self._aside = 0
        self.library.raise_errors()

    def _rendered(self, wait: Wait) -> Script | native_loop.NativeProgram:
        if self.recipe.caller == "binding":
            return callers.script(steps(self.recipe), self.rig, wait)
        return callers.program(steps(self.recipe), self.rig)

    def _compiled(self) -> Issue:
        if isinstance(self._loop, Script):
            return compile_python(self._loop)
        return (native_loop.compile_native if self.recipe.caller == "native" else native_loop.compile_ffi)(self._loop)

    def _waiter(self) -> tuple[str, Wait]:
        """The wait's name, and the callable. Raises ``Unsupported`` where the binding's own does not work."""
        device, queue, data = self.rig.device, self.rig.queue, self.rig.data[0]
        match self.recipe.wait:
            case "":
                return self.library.wait_name, self.library.waiter(device, queue)
            case "read-buffer":
                return "read-buffer", functools.partial(queue.read_buffer, data, 0, 4)
            case "map":
                return "map", self._mapping_wait()
        try:
            queue.on_submitted_work_done_sync()
        except Exception as error:  # whatever a broken binding raises is the reason
            raise Unsupported(f"on_submitted_work_done_sync: {type(error).__name__}: {str(error)[:200]}") from error
        return "work-done", queue.on_submitted_work_done_sync

    def _mapping_wait(self) -> Wait:
        """Copy four bytes to a buffer kept for that, and map it: what a reader of results waits for."""
        device, queue, data = self.rig.device, self.rig.queue, self.rig.data[0]
        staging = self.rig.staging()

        def wait() -> None:
            encoder = device.create_command_encoder()
            encoder.copy_buffer_to_buffer(data, 0, staging, 0, 4)
            queue.submit([encoder.finish()])
            staging.map_sync("READ")
            staging.unmap()

        return wait

    def prepare(self, n: int) -> None:
        """For the fused dispatch, put n where the kernel reads it."""
        if self.recipe.pattern == "fused" and n != self._count:
            self.rig.put(self.rig.uniform, n)
            self.wait()
            self._count = n

    def issue(self, n: int) -> None:
        raise NotImplementedError  # bound in __init__

    def wait(self) -> None:
        raise NotImplementedError  # bound in __init__

    def executed(self) -> int:
        """Steps read back from the buffers; on Dawn's Null, where nothing runs, 0. Raises ``Unverified``."""
        self.wait()
        self.library.raise_errors()
        if not self.executes:
            return 0
        try:
            at = self.rig.read()
        except Unverified:
            raise
        except Exception as error:  # the binding raises its own kinds of error while it reads
            raise Unverified(f"reading back: {type(error).__name__}: {str(error)[:300]}") from error
        self._total += sum((now - before) % lcg.PERIOD for now, before in zip(at, self._at, strict=True))
        self._at = at
        return self._total - self._aside

    def device(self, n: int) -> DeviceTime | None:
        """By timestamp queries behind a plug. Raises ``Unsupported``; None where units wait, or nothing runs."""
        if not self.executes or self.recipe.waits_each:
            return None
        return self._clock.measure(n)

    @functools.cached_property
    def _clock(self) -> DeviceClock:
        return DeviceClock(self)

    def aside(self, steps: int) -> None:
        """Steps that ran but are not to count as executed: those of ``device``."""
        self._aside += steps

    def units_a_submit(self, n: int) -> int:
        """Units that one submission holds if n are issued."""
        return self.recipe.per or n

    def stages(self, n: int) -> Mapping[str, Sequence[int]]:
        """Stage to durations, and ``clock``: durations of nothing, whose cost each of the others holds once."""
        self.prepare(n)
        found = self._stages(n)
        self.wait()
        return cast(Mapping[str, Sequence[int]], found)

    @functools.cached_property
    def _stages(self) -> Stages:
        if isinstance(self._loop, Script):
            return compile_python_stages(self._loop)
        return native_loop.compile_stages(self._loop, "native" if self.recipe.caller == "native" else "ffi")

    def window(self) -> dict[str, Scalar]:
        recipe = self.recipe
        each = {1: "1 per unit", 0: "1"}.get(recipe.per, f"1 per {recipe.per} units")
        rotates = recipe.bindgroup != "once" or recipe.argument == "dynamic-offset"
        return {
            "submits": each,
            "passes": "1 per unit" if recipe.pattern == "per-pass" else each,
            "bind_changes": "1 per unit" if rotates or recipe.pattern == "per-pass" else each,
            "bindgroup": recipe.bindgroup,
            "bindings": recipe.bindings,
            "argument": recipe.argument,
            "indirect": recipe.indirect,
            "wait": self._wait_name,
            "recording": "inside",
            "validation": recipe.validation,
            "checks": recipe.checks,
            "precision": "u32",
            "workgroups": GROUPS,
        }

    def kernels(self) -> dict[str, str]:
        return {self.recipe.kernel: self.rig.sha256}

    def close(self) -> None:
        self.wait()
        self.rig.destroy()


def _max_n(recipe: Recipe, target: Target) -> int:
    if recipe.pattern == "fused":
        return LLVMPIPE_TURNS if "llvmpipe" in target.adapter else 1 << 26
    return {"per-submit": 1 << 17, "per-k": 1 << 18}.get(recipe.pattern, 1 << 16)
