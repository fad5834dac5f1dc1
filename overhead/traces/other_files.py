"""Files that people take for traces, and that hold none that overhead reads: told by their content.

Each has a sentence that says what the file is, and what to do instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from overhead.results import Reason, because

SAMPLE_BYTES = 1 << 16
"""So many bytes of a file tell its kind. Chosen, not measured: headers have a few hundred."""
_LARGE_SAMPLE = 1 << 20
"""So many bytes of a trace hold events of each kind. Chosen, not measured."""
_TAR_AT = 257
"""Where the word ``ustar`` stands in a tar archive."""
_FIRST = 200
"""The first bytes of a file, in which a page or a message of XPlane shows its kind."""
_COLUMNS = (
    b"Kernel_Name",
    b"Kernel Name",
    b"KernelName",
    b"Total Time",
    b"Time (%)",
    b"Duration (ns)",
    b"Correlation_Id",
    b"BeginNs",
)
"""Columns of the tables that profilers write as text, one or more of them."""
_MOST_KEYS = 200
"""Most characters of the keys of an unknown file that a sentence names."""


@dataclass(frozen=True)
class OtherFile:
    """A kind of file that is not read. ``why``: what it is, and what to do. ``fits``: whether a
    file is of this kind, by its name and its first bytes, after unpacking by gzip.
    """

    why: Reason
    fits: Callable[[Path, bytes | bytearray], bool]


def _begins(*starts: bytes) -> Callable[[Path, bytes | bytearray], bool]:
    """Whether a file begins with one of these bytes."""

    def fits(path: Path, sample: bytes | bytearray) -> bool:
        return sample.startswith(starts)

    return fits


def _named(*ends: str) -> Callable[[Path, bytes | bytearray], bool]:
    """Whether the name of a file ends so: for kinds whose content has no mark."""

    def fits(path: Path, sample: bytes | bytearray) -> bool:
        return path.name.lower().endswith(ends)

    return fits


def _holds(*words: bytes) -> Callable[[Path, bytes | bytearray], bool]:
    """Whether the bytes hold all of these words."""

    def fits(path: Path, sample: bytes | bytearray) -> bool:
        return all(word in sample for word in words)

    return fits


def _holds_one_of(*words: bytes) -> Callable[[Path, bytes | bytearray], bool]:
    """Whether the bytes hold one of these words."""

    def fits(path: Path, sample: bytes | bytearray) -> bool:
        return any(word in sample for word in words)

    return fits


def _is_empty(path: Path, sample: bytes | bytearray) -> bool:
    return not sample.strip()


def _is_tar(path: Path, sample: bytes | bytearray) -> bool:
    return sample[_TAR_AT : _TAR_AT + 5] == b"ustar"


def _is_page(path: Path, sample: bytes | bytearray) -> bool:
    start = sample[:_FIRST].lstrip().lower()
    return start.startswith((b"<!doctype", b"<html", b"<?xml"))


def _is_xplane(path: Path, sample: bytes | bytearray) -> bool:
    """A message of protobuf begins with the number of a field (10), and XPlane with the name of a
    plane such as ``/host:CPU``.
    """
    start = sample[:_FIRST]
    has_plane = b"/host:" in start or b"/device:" in start
    is_message = start[:1] == b"\n" and _is_binary(path, sample)
    return path.name.endswith(".xplane.pb") or (is_message and has_plane)


def _is_protobuf(path: Path, sample: bytes | bytearray) -> bool:
    """Perfetto's own format: packets, each with the number of a field (10) and its length."""
    if path.name.endswith((".pftrace", ".perfetto-trace")):
        return True
    # JSON may begin with a line break too, but holds no such control characters.
    return sample[:1] == b"\n" and _is_binary(path, sample)


def _is_pickle(path: Path, sample: bytes | bytearray) -> bool:
    return sample[:1] == b"\x80" and sample[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")


def _is_table(path: Path, sample: bytes | bytearray) -> bool:
    """A table as text: rows of values with commas, such as rocprof's and nsys stats' CSV."""
    first_line = sample.partition(b"\n")[0]
    if first_line[:1] in (b"{", b"["):
        return False
    return any(column in first_line for column in _COLUMNS)


def _is_binary(path: Path, sample: bytes | bytearray) -> bool:
    # JSON may hold control characters too, in a name that its writer did not escape.
    if sample[:_FIRST].lstrip()[:1] in (b"{", b"["):
        return False
    return re.search(rb"[\x00-\x08\x0e-\x1a]", sample[:1000]) is not None


def _is_text(path: Path, sample: bytes | bytearray) -> bool:
    """What begins as no object and no list is no JSON of a trace."""
    return sample.lstrip()[:1] not in (b"{", b"[")


_BY_CONTENT = (
    OtherFile(because("file-is-empty"), _is_empty),
    OtherFile(because("file-is-lfs-pointer"), _begins(b"version https://git-lfs")),
    OtherFile(because("file-is-tar"), _is_tar),
    OtherFile(because("file-is-zip"), _begins(b"PK\x03\x04")),
    OtherFile(
        because("file-is-packed"),
        _begins(b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf", b"\x04\x22\x4d\x18"),
    ),
    OtherFile(because("file-is-page"), _is_page),
    OtherFile(because("file-is-xplane"), _is_xplane),
    OtherFile(because("file-is-nsight-compute"), _begins(b"NVR\0")),
    OtherFile(because("file-is-nsight-compute"), _named(".ncu-rep")),
    OtherFile(
        because("file-is-nsys-other-export"),
        _begins(b"\x89HDF\r\n", b"ARROW1", b"PAR1", b"\xff\xff\xff\xff"),
    ),
    OtherFile(because("file-is-pickle"), _is_pickle),
    OtherFile(because("file-is-perfetto"), _is_protobuf),
    OtherFile(because("file-is-table"), _is_table),
    OtherFile(because("file-is-go-trace"), _begins(b"go 1.")),
    OtherFile(because("file-is-binary"), _is_binary),
    OtherFile(because("file-is-text"), _is_text),
)
"""The first kind that fits counts."""

_BY_JSON = (
    OtherFile(because("file-is-explanation"), _holds(b'"overhead-explain"')),
    OtherFile(because("file-is-rocprofv3"), _holds(b'"rocprofiler-sdk-tool"')),
    OtherFile(because("file-is-execution-trace"), _holds(b'"schema"', b'"nodes"')),
    OtherFile(because("file-is-memory-snapshot"), _holds_one_of(b'"segments"', b'"device_traces"')),
    OtherFile(
        because("file-is-nsys-json"),
        _holds_one_of(b'"TraceProcessEvent"', b'"CudaEvent"', b'"NvtxEvent"'),
    ),
    OtherFile(because("file-is-nsys-json"), _holds(b'"Type"', b'"id"')),
    # So py-spy, rbspy and others export what they have sampled.
    OtherFile(because("file-is-profile-of-functions"), _holds(b"speedscope.app")),
    OtherFile(because("file-is-trtexec"), _holds(b'"averageMs"')),
)
"""JSON that is no trace of Chrome's format."""
_OF_LISTS = re.compile(rb"\s*\[\s*\[\s*(?:-?\d|\])")
"""A list of lists of numbers: the raw timeline of memory that PyTorch's profiler exports."""

_BY_EVENTS = (
    # So torch_npu names the processes and the arrows of its traces.
    OtherFile(because("file-is-ascend"), _holds_one_of(b'"async_npu"', b'"Ascend Hardware"')),
    OtherFile(because("file-is-unitrace"), _holds(b'"gpu_op"')),
    # So torch.autograd.profiler named its processes before PyTorch 1.8.1.
    OtherFile(
        because("file-is-old-autograd"), _holds_one_of(b'"CUDA functions"', b'"CPU functions"')
    ),
    OtherFile(because("file-is-rocprof"), _holds(b'"BeginNs"')),
)
"""Traces in Chrome's format of other programs, also of those that use a category of PyTorch's."""
_BY_FOREIGN_EVENTS = (
    # So XProf names the processes of its traces.
    OtherFile(because("file-is-xprof"), _holds_one_of(b'"/host:', b'"/device:')),
    OtherFile(because("file-is-tensorflow"), _holds_one_of(b'"cat":"Op"', b'"cat": "Op"')),
    OtherFile(
        because("file-is-onnx-runtime"), _holds_one_of(b'"model_loading_', b"ExecutionProvider")
    ),
    # So VizTracer writes what Python ran.
    OtherFile(
        because("file-is-profile-of-functions"), _holds_one_of(b'"viztracer_metadata"', b'"FEE"')
    ),
    OtherFile(
        because("file-is-browser"), _holds_one_of(b"devtools.timeline", b"disabled-by-default-")
    ),
)
"""Of those that have no category of PyTorch."""

_DATABASES = (
    ("rocpd_", because("database-is-rocpd")),
    ("CUPTI_ACTIVITY_KIND_MARKER", because("database-is-nvprof")),
    ("StringTable", because("database-is-nvprof")),
)
"""How the name of a table begins that a database of another profiler has."""


def other_file(path: Path, sample: bytes | bytearray) -> Reason | None:
    """What a file is, by its first bytes, if it can be no trace in JSON; None if it can."""
    return _first_that_fits(_BY_CONTENT, path, sample)


def known_json(path: Path, sample: bytes | bytearray) -> Reason | None:
    """What JSON of another program is; None if it is of none that is known here."""
    return _first_that_fits(_BY_JSON, path, sample)


def other_json(path: Path, sample: bytes | bytearray, keys: Collection[str]) -> Reason:
    """What JSON is that has no list of events. ``keys``: those of the object, none of a list."""
    found = known_json(path, sample)
    if found is not None:
        return found
    if _OF_LISTS.match(sample):
        return because("file-is-memory-timeline")
    if not keys:
        return because("json-is-no-trace")
    named = ", ".join(sorted(keys)[:8])[:_MOST_KEYS]
    return because("json-has-other-keys", keys=named)


def other_trace(path: Path, raw: bytes | bytearray, *, of_pytorch: bool) -> Reason | None:
    """Whose trace in Chrome's format this is, if it is of no program that is read; None if it may
    be PyTorch's. ``of_pytorch``: whether it has a category that PyTorch writes.
    """
    # A large file of PyTorch is not searched to its end.
    begin = raw[:_LARGE_SAMPLE] if of_pytorch else raw
    found = _first_that_fits(_BY_EVENTS, path, begin)
    if found is None and not of_pytorch:
        found = _first_that_fits(_BY_FOREIGN_EVENTS, path, raw)
    return found


def other_database(tables: Collection[str]) -> Reason | None:
    """Whose database this is, if it has tables of another profiler; None if it has not."""
    for start, why in _DATABASES:
        if any(table.startswith(start) for table in tables):
            return why
    return None


def _first_that_fits(
    kinds: Collection[OtherFile], path: Path, sample: bytes | bytearray
) -> Reason | None:
    for kind in kinds:
        if kind.fits(path, sample):
            return kind.why
    return None
