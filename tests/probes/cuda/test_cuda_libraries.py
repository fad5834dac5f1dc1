"""cuda.core, numba-cuda and CuTe DSL on fakes of these libraries; and real compilers, where they
are installed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from overhead.probes.base import Unavailable
from overhead.probes.cuda.cuda_core import CudaCoreProbe
from overhead.probes.cuda.cute_dsl import CuteDslProbe
from overhead.probes.cuda.library import DeviceWords, LibraryProbe
from overhead.probes.cuda.numba_cuda import STEP, NumbaCudaProbe
from overhead.results import Reason, Target
from tests.fakes.cuda_driver import LAUNCH_NS
from tests.fakes.cuda_libraries import install

TARGET = Target(stack="cuda-core", api="CUDA", adapter="Fake GPU", options={"ordinal": 0})
CORE, NUMBA, CUTE = CudaCoreProbe(), NumbaCudaProbe(), CuteDslProbe()
COUNTS = (0, 1, 8, 16)


@pytest.mark.needs("cxx")
@pytest.mark.parametrize("probe", [CORE, NUMBA, CUTE], ids=lambda probe: probe.name)
def test_the_device_time_of_a_library_s_launches_is_that_of_the_driver_s(
    probe: LibraryProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)
    for case in probe.space(TARGET).star():
        chain = probe.open(TARGET, case)
        device_time = chain.device(20)
        assert chain.executed() == 0
        assert chain.kernels()
        waits_each = case.pattern == "wait-each"
        assert chain.latency == waits_each
        if waits_each:
            assert device_time is None
        else:
            assert device_time is not None
            assert device_time.span == pytest.approx(20 * LAUNCH_NS, rel=1e-3)
        chain.close()


@pytest.mark.parametrize("probe", [CORE, NUMBA, CUTE], ids=lambda probe: probe.name)
def test_each_way_into_a_library_is_measured_with_0_1_8_and_16_arguments(
    probe: LibraryProbe,
) -> None:
    counts_by_entry: dict[object, set[object]] = {}
    for case in probe.space(TARGET).star():
        entry = case.params.get("entry")
        counts_by_entry.setdefault(entry, set()).add(case.params["arguments"])

    assert set(counts_by_entry) == set(probe.entries or [None])
    for name, counts in counts_by_entry.items():
        has_nothing_to_convert_without_arguments = str(name).endswith("from-dlpack")
        if has_nothing_to_convert_without_arguments:
            assert counts == {1, 8, 16}
        else:
            assert counts == {0, 1, 8, 16}


@pytest.mark.needs("cxx")
@pytest.mark.parametrize(
    ("probe", "module", "instead", "extra"),
    [
        (CORE, "cuda.core", None, "cuda13"),
        (NUMBA, "numba_cuda", None, "numba-cuda"),
        (NUMBA, "numba.cuda", SimpleNamespace(implementation="Built-in"), "numba-cuda"),
        (CUTE, "cutlass", None, "cute"),
        (CUTE, "tvm_ffi", None, "cute"),
    ],
)
def test_a_stack_without_its_library_says_so_and_names_the_command_that_adds_it(
    probe: LibraryProbe, module: str, instead: object, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)
    assert probe.targets()[0].versions[probe.distributions[0]]
    monkeypatch.setitem(sys.modules, module, instead)
    with pytest.raises(Unavailable, match=r"does-not-import|numba-cuda-is-of-numba") as caught:
        probe.open(probe.targets()[0], probe.space(TARGET).base)
    assert isinstance(caught.value.mend, Reason)
    assert caught.value.mend.values["extras"] == extra


@pytest.mark.needs("cutlass", "torch")
def test_cute_dsl_compiles_kernels_with_as_many_parameters_as_the_case_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the compiler keeps its text in the folder where it is imported

    import cutlass
    import torch
    from cuda.bindings.driver import CUstream

    from overhead.probes.kernels.step_cute import LAUNCHES

    zeros = torch.zeros(256, dtype=torch.int32)
    tensor = cutlass.cute.runtime.from_dlpack(zeros).mark_layout_dynamic()
    for count in COUNTS:
        address = 4096
        given = [tensor] * count or [address]
        compiled = cutlass.cute.compile(LAUNCHES[count], *given, CUstream(0), options="--keep-ptx")
        text = compiled.__ptx__
        assert "1664525, 1013904223" in text
        assert text.count(".param .align") == count


@pytest.mark.needs("numba_cuda")
def test_numba_cuda_compiles_the_step_with_7_parameters_for_each_array_and_without_arguments() -> (
    None
):
    from numba import cuda

    words: Any = SimpleNamespace(seeds=np.zeros(256), words=4096)
    for count in COUNTS:
        scope: dict[str, Any] = {
            "cuda": cuda,
            "x": DeviceWords(words),
            "scale": np.uint32(5),
            "shift": np.uint32(3),
        }
        names = ["x", *[f"y{i}" for i in range(1, count)]]
        exec(STEP.format(", ".join(names[:count])), scope)
        types = (cuda.types.uint32[::1],) * count
        text, _ = cuda.compile_ptx(scope["step"], types, cc=(9, 0))
        assert text.count(".param .u64") == 7 * count
