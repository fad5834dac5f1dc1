"""cuda.core: ``launch(stream, config, kernel, *arguments)`` of NVIDIA's Python package on the
driver.
"""

from __future__ import annotations

from itertools import repeat

from overhead.probes import register
from overhead.probes.common.loops import Action, Issue
from overhead.probes.cuda.library import LibraryLaunches, LibraryProbe
from overhead.probes.cuda.session import CUDA_GRID, GROUP_SIZE, machine_code_of
from overhead.probes.kernels import source

_FILES = ("step.cu", "step_more.cu")


class CoreLaunches(LibraryLaunches):
    """Launches by cuda.core. The arguments are Python's integers: the address of the words, and
    unused values.
    """

    def make_wait(self) -> Action:
        """``Stream.sync`` of the device's default stream."""
        device = self.library.Device(self.ordinal)
        device.set_current()
        self._stream = device.default_stream
        sync: Action = self._stream.sync
        return sync

    def make_loop(self, count: int) -> Issue:
        """A function ``loop(n)`` that launches the step n times with cuda.core (``library``).
        ``words``: the address of the memory that the step changes. The kernel, its ``count``
        arguments and the configuration of the launch are made now, so that the loop does nothing
        else.
        """
        core = self.library
        words = self.session.words
        hashes = {}
        # A kernel without arguments has the address of its memory as a constant.
        parts = [f"#define WORDS {words:#x}"]
        # Of each file the text, and its SHA-256 for the record.
        for name in _FILES:
            text, hashes[name] = source(name)
            parts.append(text)
        self.hashes = hashes
        device = self.session.driver.devices()[self.ordinal]
        # First the kernel, compiled from that text (its name is for messages), then its arguments.
        code = machine_code_of("step.cu", "\n".join(parts), device.architecture)
        module = core.ObjectCode.from_cubin(code)
        if count:
            # The kernel with this number of arguments uses only the first.
            kernel = module.get_kernel(f"step{count}")
            unused_values = range(1, count)
            arguments: tuple[int, ...] = (words, *unused_values)
        else:
            kernel = module.get_kernel("fixed")
            arguments = ()
        launch = core.launch
        stream = self._stream
        config = core.LaunchConfig(grid=CUDA_GRID, block=GROUP_SIZE)

        def loop(n: int) -> None:
            for _ in repeat(None, n):
                launch(stream, config, kernel, *arguments)

        return loop


@register
class CudaCoreProbe(LibraryProbe):
    """cuda.core. The configuration of the launch is made once."""

    name = "cuda-core"
    title = "cuda.core"
    distributions = ("cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc")
    package = "cuda.core"
    chain = CoreLaunches
