"""Facts on a whole run: which stacks are missing, and what adds them on this machine."""

from __future__ import annotations

import msgspec
import pytest

from overhead.reading.summary import MissingStacks, addable_on_cpu, missing_stacks
from overhead.reading.view import View
from overhead.results import Gpu, MissingStack, because
from tests.fakes.report import fingerprint

DRIVER = "install NVIDIA's driver"
ABSENT = [
    MissingStack(stack="cuda-driver", reason="no libcuda", mend=DRIVER),
    MissingStack(stack="chromium", reason="no browser", mend="apt install chromium"),
    MissingStack(stack="firefox", reason="no browser", mend="apt install firefox"),
]


def missing_on(*gpus: Gpu) -> MissingStacks:
    run = fingerprint(unavailable=ABSENT)
    machine = msgspec.structs.replace(run.machine, gpus=[*gpus])
    return missing_stacks(View(msgspec.structs.replace(run, machine=machine)))


@pytest.mark.parametrize(
    "gpus", [(), (Gpu(name="AMD Radeon"),), (Gpu(name="NVIDIA made up", software=True),)]
)
def test_without_an_nvidia_gpu_its_driver_is_no_remedy(gpus: tuple[Gpu, ...]) -> None:
    found = missing_on(*gpus)
    assert DRIVER not in found.by_command
    assert [one.stack for one in found.for_nvidia] == ["cuda-driver"], "it is missing all the same"


def test_each_remedy_stands_with_the_stacks_that_it_adds() -> None:
    assert missing_on(Gpu(name="NVIDIA H200")).by_command == {
        DRIVER: ["cuda-driver"],
        "apt install chromium": ["chromium"],
        "apt install firefox": ["firefox"],
    }


def test_without_a_gpu_the_most_used_stacks_of_the_cpu_are_added_by_three_extras() -> None:
    extras = {
        "pyopencl": because("install-opencl", extras="opencl"),
        "dawn": because("install-extras", extras="wgpu"),
        "onnxruntime": because("install-extras", extras="onnx"),
        "mlx": because("install-mlx", extras="mlx"),
        "jax": because("install-extras", extras="jax"),
        "torch-compile": because("install-extras", extras="torch"),
        "torch": because("install-extras", extras="torch"),
        "cuda-driver": because("install-nvidia-driver"),
    }
    absent = [MissingStack(stack=name, reason="none", mend=mend) for name, mend in extras.items()]
    run = fingerprint(unavailable=absent)
    machine = msgspec.structs.replace(run.machine, gpus=[])
    found = addable_on_cpu(View(msgspec.structs.replace(run, machine=machine)))
    assert set(found.stacks) == {"torch", "torch-compile", "jax", "mlx"}
    assert found.stacks[0] == "torch"
    assert sorted(found.extras) == ["jax", "mlx", "torch"]
