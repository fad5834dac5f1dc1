"""Facts on a whole run: which stacks are missing, and what adds them on this machine."""

from __future__ import annotations

import msgspec
import pytest

from overhead.reading.summary import MissingStacks, missing_stacks
from overhead.reading.view import View
from overhead.results import Gpu, MissingStack
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
