"""CuTe DSL of CUTLASS: a kernel in Python on torch's tensors, launched with TVM-FFI and without."""

from __future__ import annotations

import functools
from itertools import repeat
from typing import Any

from overhead.probes import register
from overhead.probes.common.availability import import_library
from overhead.probes.common.loops import Action, Issue
from overhead.probes.cuda.launch import bindings
from overhead.probes.cuda.library import DeviceWords, LibraryLaunches, LibraryProbe
from overhead.probes.kernels import source
from overhead.probes.torch.devices import cuda_torch, wait_action
from overhead.results import Case, because

_MEND = because("install-extras", extras="cute")


class CuteLaunches(LibraryLaunches):
    """Calls of a compiled function that launches the kernel. All arguments are tensors on the same
    memory.
    """

    def make_wait(self) -> Action:
        """``synchronize`` of torch's current stream, which is the default stream."""
        torch = cuda_torch()
        self._place = torch.device(f"cuda:{self.ordinal}")
        torch.cuda.set_device(self._place)
        return wait_action(self._place, "stream")

    def make_loop(self, count: int) -> Issue:
        """Compile the function. Make its arguments now, unless the entry converts tensors at each
        call.
        """
        entry, convert = str(self.case.params["entry"]), self.library.cute.runtime.from_dlpack
        with_ffi = entry.startswith("tvm-ffi")
        self.hashes = {"step_cute.py": source("step_cute.py")[1]}
        words = cuda_torch().as_tensor(DeviceWords(self.session, "<i4"), device=self._place)
        tensors = [words] * count
        given = [convert(words).mark_layout_dynamic() for _ in tensors]
        # A function with TVM-FFI takes torch's current stream itself if it has a tensor.
        stream = () if with_ffi and count else (bindings().CUstream(self.session.stream),)
        compiled = self._compiled_with_ffi(count) if with_ffi else self._compiled(given, *stream)
        arguments = (*(tensors if entry == "tvm-ffi" else given), *stream)

        def prepared(n: int) -> None:
            for _ in repeat(None, n):
                compiled(*arguments)

        def converting(n: int) -> None:
            for _ in repeat(None, n):
                compiled(
                    *[convert(x, enable_tvm_ffi=with_ffi).mark_layout_dynamic() for x in tensors],
                    *stream,
                )

        return converting if entry.endswith("from-dlpack") else prepared

    def _compiled(self, tensors: list[Any], stream: Any) -> Any:
        from overhead.probes.kernels.step_cute import LAUNCHES

        given = tensors or [self.session.words]
        return self.library.cute.compile(LAUNCHES[len(tensors)], *given, stream)

    def _compiled_with_ffi(self, count: int) -> Any:
        from overhead.probes.kernels.step_cute import LAUNCHES

        import_library("tvm_ffi", _MEND)
        cute = self.library.cute
        tensor = functools.partial(cute.runtime.make_fake_compact_tensor, self.library.Int32)
        given = [tensor((cute.sym_int(),)) for _ in range(count)] or [self.session.words]
        stream = cute.runtime.make_fake_stream(use_tvm_ffi_env_stream=count > 0)
        return cute.compile(LAUNCHES[count], *given, stream, options="--enable-tvm-ffi")


@register
class CuteDslProbe(LibraryProbe):
    """CuTe DSL. ``entry=tvm-ffi`` passes torch's tensors to a function that was compiled with
    TVM-FFI, and ``entry=tensors`` passes tensors of CuTe, made once, to a function that was
    compiled without. ``from-dlpack`` and ``tvm-ffi-from-dlpack`` make tensors of CuTe from torch's
    at each call.
    """

    name = "cute-dsl"
    title = "CuTe DSL"
    mend = _MEND
    distributions = ("nvidia-cutlass-dsl", "apache-tvm-ffi", "torch", "cuda-bindings")
    package = "cutlass"
    chain = CuteLaunches
    entries = ("tvm-ffi", "tensors", "tvm-ffi-from-dlpack", "from-dlpack")

    def library(self) -> Any:
        """The module ``cutlass``. It needs a CUDA device that torch can use."""
        cuda_torch()
        return super().library()

    def allows(self, case: Case) -> bool:
        """False for a case that converts tensors at each call and has none."""
        return case.params["arguments"] != 0 or not str(case.params["entry"]).endswith(
            "from-dlpack"
        )
