"""What a whole run lacks, in words."""

from __future__ import annotations

import msgspec

from overhead.extras import install_command
from overhead.reading.view import View
from overhead.results import MissingStack, Why, because
from overhead.words.reasons import sentence
from overhead.words.summary import missing_sentences
from tests.fakes.report import fingerprint


def test_what_adds_a_stack_is_said_in_words() -> None:
    mend = because("install-mlx", extras="mlx")
    absent = MissingStack(
        stack="mlx",
        reason=because("package-does-not-import", package="mlx", text="none"),
        mend=mend,
    )
    said = missing_sentences(View(fingerprint(unavailable=[absent])))
    assert sentence(mend) in said
    assert mend.code not in said


def test_without_a_gpu_one_command_is_said_and_none_for_a_gpu() -> None:
    torch = because("install-extras", extras="torch")
    driver = because("install-nvidia-driver")
    mends: dict[str, Why] = {"torch": torch, "cuda-driver": driver}
    absent = [MissingStack(stack=name, reason="none", mend=mend) for name, mend in mends.items()]
    run = fingerprint(unavailable=absent)
    machine = msgspec.structs.replace(run.machine, gpus=[])
    said = missing_sentences(View(msgspec.structs.replace(run, machine=machine)))
    assert install_command("torch") in said
    assert sentence(driver) not in said
