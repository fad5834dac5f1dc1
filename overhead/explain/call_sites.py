"""Record which line of a program calls each operation of PyTorch."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from overhead.explain.chrome_trace import SITE_MARK
from overhead.explain.steps import call_site


def torch_folders(torch: Any) -> list[str]:
    """The folders of torch, whose lines say nothing to the reader."""
    home = Path(torch.__file__).parents[1]
    return [str(home / name) + os.sep for name in ("torch", "triton", "functorch")]


@contextlib.contextmanager
def marked_sites(torch: Any, folder: str) -> Iterator[None]:
    """Mark each operation of PyTorch, and each call that waits, with its line, for ``read_chrome_trace``."""
    from unittest import mock

    from torch.utils._python_dispatch import TorchDispatchMode

    libraries = torch_folders(torch)
    mark = torch._C._profiler._RecordFunctionFast
    main = threading.main_thread().ident

    def marked(frame: Any) -> Any:
        site = call_site(frame, folder, libraries)
        if not site.line and threading.get_ident() != main and main is not None:
            # A backward pass on a device runs in a thread of its own, while the program waits in its line.
            site = call_site(sys._current_frames().get(main), folder, libraries)
        return mark(f"{SITE_MARK}{site.line}|{site.inside}")

    class Sites(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            with marked(sys._getframe(1)):
                return func(*args, **(kwargs or {}))

    def waiting(call: Callable[..., Any]) -> Callable[..., Any]:
        def wait(*args: Any, **kwargs: Any) -> Any:
            with marked(sys._getframe(1)):
                return call(*args, **kwargs)

        return wait

    waits = [(torch.cuda.Stream, "synchronize"), (torch.cuda.Event, "synchronize"), (torch._C, "_cuda_synchronize")]
    with contextlib.ExitStack() as ends:
        for owner, name in waits:
            if hasattr(owner, name):
                ends.enter_context(mock.patch.object(owner, name, waiting(getattr(owner, name))))
        with Sites():
            yield
