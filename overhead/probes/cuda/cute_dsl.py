"""CuTe DSL of CUTLASS: a kernel in Python on torch's tensors, launched with TVM-FFI and without."""

from __future__ import annotations

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
        """A function ``loop(n)`` that calls the compiled step n times, with ``count`` arguments.

        The parameter ``entry`` says how: with or without TVM-FFI, a layer that takes torch's
        tensors as they are; and with tensors that are made now, or converted from torch's to CuTe's
        at each call (``from-dlpack``: the protocol by which libraries share tensors).
        """
        entry = str(self.case.params["entry"])
        with_ffi = entry.startswith("tvm-ffi")
        # For the record; the kernel itself is imported when it is compiled.
        _, sha256 = source("step_cute.py")
        self.hashes = {"step_cute.py": sha256}
        convert = self.library.cute.runtime.from_dlpack
        # A tensor of torch on the memory of the session, seen as int32.
        words = cuda_torch().as_tensor(DeviceWords(self.session, "<i4"), device=self._place)
        tensors = [words] * count
        # A compiled function takes tensors of any length only if their layout is marked as dynamic.
        of_cute = [convert(words).mark_layout_dynamic() for _ in tensors]
        # A function with TVM-FFI takes torch's current stream itself if it has a tensor.
        stream: tuple[Any, ...] = ()
        if not with_ffi or not count:
            stream = (bindings().CUstream(self.session.stream),)
        if with_ffi:
            compiled = self._compiled_with_ffi(count)
        else:
            compiled = self._compiled(of_cute, *stream)
        # Of the functions with prepared arguments only that of ``tvm-ffi`` gets torch's own
        # tensors.
        arguments = (*tensors, *stream) if entry == "tvm-ffi" else (*of_cute, *stream)

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
        """The function that launches the step, compiled without TVM-FFI for arguments like these
        tensors and the stream. A kernel without tensors has the address of its memory as a
        constant.
        """
        from overhead.probes.kernels.step_cute import LAUNCHES

        launch = LAUNCHES[len(tensors)]  # by the number of arguments
        # ``session.words``: the address.
        if not tensors:
            return self.library.cute.compile(launch, self.session.words, stream)
        return self.library.cute.compile(launch, *tensors, stream)

    def _compiled_with_ffi(self, count: int) -> Any:
        """The function that launches the step with ``count`` tensors, compiled with TVM-FFI, so
        that it takes torch's tensors as they are. ``LAUNCHES``: the function to compile, by its
        number of tensors. Raises ``Unavailable`` if TVM-FFI is missing.
        """
        from overhead.probes.kernels.step_cute import LAUNCHES

        # Only to say early, and with the command that installs it, that it is missing.
        import_library("tvm_ffi", _MEND)
        # The function is compiled for tensors of any length, which stand-ins describe.
        cute = self.library.cute
        arguments = []
        for _ in range(count):
            # A length that stands for any number.
            shape = (cute.sym_int(),)
            tensor = cute.runtime.make_fake_compact_tensor(self.library.Int32, shape)
            arguments.append(tensor)
        if not count:
            arguments = [self.session.words]  # the address, a constant of the kernel
        # With a tensor, the function finds torch's current stream itself; else it is an argument.
        stream = cute.runtime.make_fake_stream(use_tvm_ffi_env_stream=count > 0)
        return cute.compile(LAUNCHES[count], *arguments, stream, options="--enable-tvm-ffi")


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
        converts_each_time = str(case.params["entry"]).endswith("from-dlpack")
        has_tensors = case.params["arguments"] != 0
        return has_tensors or not converts_each_time
