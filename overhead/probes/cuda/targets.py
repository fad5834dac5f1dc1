"""The devices of the CUDA driver as targets of a stack."""

from __future__ import annotations

from overhead.probes.base import Unavailable
from overhead.results import Target


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
