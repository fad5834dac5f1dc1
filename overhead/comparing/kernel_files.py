"""Which kernel files a case may use, for a fingerprint without raw samples: it lists the files of
all its cases.
"""

from __future__ import annotations

from collections.abc import Collection

from overhead.results import Record, StackFacts

_STEP = "step"
_STEP_FILES = ("step", "fused", "spin")
"""How the names of the files of the workload ``step`` begin; those of others begin with the
workload.
"""


def may_use(record: Record, facts: StackFacts, file: str, workloads: Collection[str]) -> bool:
    """Whether a case may use the kernel file, judged by the file's name: it begins with the
    workload of the case, and ends as those of its stack do. A comparison refuses a case whose
    kernels differ, and without raw samples it knows only the files of the whole run.

    ``facts``: of the stack. ``workloads``: all that the run measured. True where that is not known:
    a plugin may not say how the names of its files end (``kernel_files`` None); then only files of
    other workloads are excluded. Raw samples tell the files of each case; a test compares all
    committed ones.
    """
    # The stack has no kernel files at all. ``kernel_files``: how the names of its files end.
    if facts.kernel_files == []:
        return False
    if facts.kernel_files is None:
        # The endings are unknown: a file may be of this case unless it has another workload's name.
        others = [name for name in workloads if name not in (_STEP, record.workload)]
        return not any(_is_of(file, workload) for workload in others)
    endings = tuple(facts.kernel_files)
    if record.workload == _STEP:
        return file.startswith(_STEP_FILES) and file.endswith(endings)
    return _is_of(file, record.workload) and file.endswith(endings)


def _is_of(file: str, workload: str) -> bool:
    """Whether a file has the name of the workload, as ``recurrence.cu`` and
    ``recurrence_fused.spv``.
    """
    return file.startswith((f"{workload}.", f"{workload}_"))
