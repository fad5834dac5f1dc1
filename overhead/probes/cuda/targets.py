"""The devices of the CUDA driver as targets of a stack, and its chains by case."""

from __future__ import annotations

from overhead.probes.base import Chain, Unavailable
from overhead.results import Case, Target


def driver_targets(stack: str) -> list[Target]:
    """One target for each device of the driver. Raises ``Unavailable`` if there is none."""
    from overhead.probes.cuda.api import driver, version_text

    version = version_text(driver().version())
    found = [
        Target(
            stack=stack,
            api="CUDA",
            adapter=device.name,
            device=device.device,
            driver=f"CUDA {version}",
            versions={"cuda-driver": version},
            options={"ordinal": device.ordinal},
        )
        for device in driver().devices()
    ]
    if not found:
        raise Unavailable("the NVIDIA driver shows this process no device", "see what CUDA_VISIBLE_DEVICES holds")
    return found


def open_by_driver(ordinal: int, case: Case) -> Chain:
    """The chain of a case whose calls go to the driver."""
    from overhead.probes.cuda import chains, graphs, workload
    from overhead.probes.cuda.api import driver

    if "elements" in case.params:
        return workload.open_case(driver(), ordinal, case)
    if "maker" in case.params:
        return (graphs.CudaReplay if case.pattern == "replay" else graphs.GraphLaunches)(driver(), ordinal, case)
    single = chains.LoopLaunches if "loops" in case.params else chains.CudaLaunches
    return (chains.CudaFused if case.pattern == "fused" else single)(driver(), ordinal, case)
