"""Write the lines of the program into PyTorch's profile while a step runs, and find them."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from overhead.timing.own_code import EXAMPLE, SUITE, is_own_code
from overhead.traces.marks import SITE_MARK
from overhead.traces.trace import CallSite


def call_site(frame: types.FrameType | None, folder: str, libraries: Sequence[str]) -> CallSite:
    """The line of the user's program that leads to this frame, through its callers. With it
    (``inside``), the innermost line of an installed package on the way.

    ``folder``: of the program; lines are relative to it. ``libraries``: folders whose lines are
    passed over, as are those of this suite and of code without a file.
    """
    inside = ""
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        # The example of this suite counts as a program of the user.
        is_passed_over = file.startswith((*libraries, SUITE, "<")) and file != EXAMPLE
        if not is_passed_over:
            source_line = f"{_shown(file, folder)}:{frame.f_lineno}"
            if is_own_code(code):  # no code of an installed package
                return CallSite(line=source_line, inside=inside)
            inside = inside or source_line
        frame = frame.f_back
    return CallSite(inside=inside)


def _shown(file: str, folder: str) -> str:
    """The path of a file without what tells about the machine or its user, as results show it:
    relative to the program's ``folder``, or below ``site-packages``, or only its name.
    """
    if folder and file.startswith(folder + os.sep):
        return os.path.relpath(file, folder).replace(os.sep, "/")
    _, packages, rest = file.replace(os.sep, "/").rpartition("/site-packages/")
    return rest if packages else os.path.basename(file)


def torch_folders(torch: Any) -> list[str]:
    """The folders of torch and its libraries, each with a separator at its end; their lines tell a
    user nothing.
    """
    home = Path(torch.__file__).parents[1]
    return [str(home / name) + os.sep for name in ("torch", "triton", "functorch")]


@contextlib.contextmanager
def marked_sites(torch: Any, folder: str) -> Iterator[None]:
    """A context for code that PyTorch profiles: around each operation and each wait for the device,
    a mark is written into the profile, whose name is the line of the program that leads to it. A
    reader of the trace finds the lines by these marks.

    ``folder``: lines are written relative to it.
    """
    from unittest import mock

    from torch.utils._python_dispatch import TorchDispatchMode

    libraries = torch_folders(torch)
    mark = torch._C._profiler._RecordFunctionFast
    main = threading.main_thread().ident

    def marked(frame: Any) -> Any:
        """The mark for what this frame calls, as a context."""
        site = call_site(frame, folder, libraries)
        if not site.line and threading.get_ident() != main and main is not None:
            # A backward pass on a device runs in a thread of its own, while the program waits in
            # its line.
            site = call_site(sys._current_frames().get(main), folder, libraries)
        # ``line``: of the program; ``inside``: the innermost one of an installed package on the
        # way.
        return mark(f"{SITE_MARK}{site.line}|{site.inside}")

    class Sites(TorchDispatchMode):  # type: ignore[misc]
        """PyTorch calls this in place of each operation."""

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            # Frame 1 is of the caller.
            with marked(sys._getframe(1)):
                return func(*args, **(kwargs or {}))

    def marked_wait(call: Callable[..., Any]) -> Callable[..., Any]:
        def wait(*args: Any, **kwargs: Any) -> Any:
            with marked(sys._getframe(1)):
                return call(*args, **kwargs)

        return wait

    # No operations, so they are replaced one by one; a torch without CUDA lacks some.
    waits = [
        (torch.cuda.Stream, "synchronize"),
        (torch.cuda.Event, "synchronize"),
        (torch._C, "_cuda_synchronize"),
    ]
    with contextlib.ExitStack() as ends:
        for owner, name in waits:
            if hasattr(owner, name):
                replaced = marked_wait(getattr(owner, name))
                ends.enter_context(mock.patch.object(owner, name, replaced))
        with Sites():
            yield
