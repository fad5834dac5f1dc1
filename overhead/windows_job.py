"""On Windows: a child process and all that it starts end with this process, however this one ends.

Linux ends a child by a signal (see ``child``). Windows has job objects: when the last handle of a
job is closed, which the system does for a process that was killed too, it ends all processes of the
job.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys

_EXTENDED_LIMITS = 9
"""JobObjectExtendedLimitInformation."""
_KILL_ON_CLOSE = 0x2000
"""JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE."""


class _BasicLimits(ctypes.Structure):
    """JOBOBJECT_BASIC_LIMIT_INFORMATION."""

    _fields_ = [
        ("per_process_user_time", ctypes.c_int64),
        ("per_job_user_time", ctypes.c_int64),
        ("flags", ctypes.c_uint32),
        ("least_working_set", ctypes.c_size_t),
        ("most_working_set", ctypes.c_size_t),
        ("most_processes", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("priority_class", ctypes.c_uint32),
        ("scheduling_class", ctypes.c_uint32),
    ]


class _ExtendedLimits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = [
        ("basic", _BasicLimits),
        ("io_counters", ctypes.c_uint64 * 6),
        ("process_memory", ctypes.c_size_t),
        ("job_memory", ctypes.c_size_t),
        ("peak_process_memory", ctypes.c_size_t),
        ("peak_job_memory", ctypes.c_size_t),
    ]


class EndsWithParent:
    """Holds the job of one child process. ``close`` ends the processes that are still in it.

    Where the system refuses a job, which old versions do inside of another job, the child is ended
    only by ``kill``.
    """

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        """Put the child into a new job, which ends its processes when its handle is closed. Does
        nothing on other systems than Windows.
        """
        self._job: int | None = None
        if sys.platform == "win32":
            kernel = ctypes.WinDLL("kernel32", use_last_error=True)
            kernel.CreateJobObjectW.restype = ctypes.c_void_p
            # A job without a name; its processes end when the last handle of it is closed.
            self._job = kernel.CreateJobObjectW(None, None)
            # Of all limits that a job can have, only that its processes end with it.
            limits = _ExtendedLimits()
            limits.basic.flags = _KILL_ON_CLOSE
            size = ctypes.sizeof(limits)
            job = ctypes.c_void_p(self._job)
            # ``_EXTENDED_LIMITS``: the number by which Windows knows this kind of structure.
            kernel.SetInformationJobObject(job, _EXTENDED_LIMITS, ctypes.byref(limits), size)
            kernel.AssignProcessToJobObject(job, ctypes.c_void_p(int(child._handle)))  # type: ignore[attr-defined]

    def close(self) -> None:
        """End what is left of the child and of the processes that it started. A second call does
        nothing.
        """
        if sys.platform == "win32" and self._job is not None:
            ctypes.WinDLL("kernel32").CloseHandle(ctypes.c_void_p(self._job))
            self._job = None
