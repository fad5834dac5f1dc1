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
        """Load the kernel, and prepare its arguments and the configuration of the launch."""
        core, words = self.library, self.session.words
        texts = {name: source(name) for name in _FILES}
        self.hashes = {name: sha256 for name, (_, sha256) in texts.items()}
        text = "\n".join([f"#define WORDS {words:#x}", *(text for text, _ in texts.values())])
        code = machine_code_of(
            "step.cu", text, self.session.driver.devices()[self.ordinal].architecture
        )
        kernel = core.ObjectCode.from_cubin(code).get_kernel(f"step{count}" if count else "fixed")
        launch, stream = core.launch, self._stream
        config = core.LaunchConfig(grid=CUDA_GRID, block=GROUP_SIZE)
        arguments = (words, *range(1, count)) if count else ()

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
