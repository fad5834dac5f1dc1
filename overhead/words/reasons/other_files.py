"""The sentences of files that are no traces which overhead reads: what each is, and what to do."""

from __future__ import annotations

_RECORD = (
    "record the program with torch.profiler (export_chrome_trace), or with nsys profile --trace"
    " cuda,nvtx and nsys export --type sqlite"
)
"""What to record on a GPU of NVIDIA."""
_RECORD_AMD = "record the program with torch.profiler (export_chrome_trace)"
_JAX = (
    "it has no launches. Explain the program itself: overhead explain STEP; or record it with nsys"
    " profile --trace cuda,nvtx and nsys export --type sqlite"
)

TEMPLATES = {
    # By the first bytes.
    "file-is-empty": "an empty file; record the trace again",
    "file-is-folder": "a folder; name the trace files in it",
    "file-is-folder-with-traces": "a folder; name the trace files in it: {files}",
    "file-is-lfs-pointer": "a pointer of Git LFS, not the file itself; get it: git lfs pull",
    "file-is-tar": "a tar archive; unpack it (tar -xf) and name the trace files in it",
    "file-is-zip": "a zip archive; unpack it (unzip) and name the trace files in it",
    "file-is-packed": "packed, and not with gzip; unpack it (such as xz -d, bzip2 -d, zstd -d)",
    "packed-file-is-damaged": "packed by gzip, and damaged ({message}); copy or make it again",
    "file-is-page": "a web page (HTML or XML), not a trace; download the trace itself",
    "file-is-xplane": "a trace of XProf (JAX or TensorFlow, XPlane); " + _JAX,
    "file-is-nsight-compute": (
        "a report of Nsight Compute, which measures single kernels and not a step; record the"
        " program with nsys profile --trace cuda,nvtx, and nsys export --type sqlite"
    ),
    "file-is-nsys-other-export": (
        "HDF5, Arrow or Parquet, as Nsight Systems exports too; export the report as SQLite: nsys"
        " export --type sqlite REPORT.nsys-rep"
    ),
    "file-is-pickle": (
        "a pickle, such as PyTorch's snapshot of memory; it has no launches. To explain a step, "
        + _RECORD
    ),
    "file-is-perfetto": (
        "a trace of Perfetto in protobuf, which overhead does not read; export the JSON of"
        " torch.profiler (export_chrome_trace)"
    ),
    "file-is-table": (
        "a table (CSV), not a trace; give the trace that it was made of, or " + _RECORD
    ),
    "file-is-go-trace": "a trace of Go's runtime; it has no launches of a GPU",
    "file-is-binary": "a binary file of a kind that overhead does not know; to explain a step, "
    + _RECORD,
    "file-is-text": "a text, not a trace; to explain a step, " + _RECORD,
    # By the keys of JSON.
    "file-is-explanation": (
        "an explanation that overhead wrote, not a trace; give the trace that it was made of"
    ),
    "file-is-rocprofv3": (
        "a trace of rocprofv3 (JSON), which overhead does not read; " + _RECORD_AMD
    ),
    "file-is-rocprof": "a trace of rocprof, which overhead does not read; " + _RECORD_AMD,
    "file-is-execution-trace": (
        "an execution trace of PyTorch (Chakra), which has operations and no times of the device;"
        " give the trace of torch.profiler that was recorded with it (export_chrome_trace)"
    ),
    "file-is-memory-snapshot": (
        "a snapshot of PyTorch's memory; it has no launches. To explain a step, " + _RECORD
    ),
    "file-is-memory-timeline": (
        "lists of numbers, such as a timeline of PyTorch's memory; they have no launches. To"
        " explain a step, " + _RECORD
    ),
    "file-is-nsys-json": (
        "JSON of Nsight Systems; export the report as SQLite: nsys export --type sqlite"
        " REPORT.nsys-rep"
    ),
    "file-is-profile-of-functions": (
        "a profile of the functions of a program (such as of py-spy or VizTracer); it has no"
        " launches. To explain a step, " + _RECORD
    ),
    "file-is-trtexec": (
        "times of layers, as trtexec of TensorRT exports them; they have no launches. To explain"
        " a step: nsys profile --trace cuda,nvtx, and nsys export --type sqlite"
    ),
    "json-is-no-trace": "JSON that is no trace: it has no events; to explain a step, " + _RECORD,
    "json-has-other-keys": (
        "JSON that is no trace: it has {keys}, and no list of traceEvents; to explain a step, "
        + _RECORD
    ),
    "json-nested-too-deep": (
        "JSON with lists or objects inside each other without an end, so no trace of a profiler;"
        " to explain a step, " + _RECORD
    ),
    "json-without-events": "a trace without any event; record it again",
    "json-broken": (
        "JSON that is not valid at byte {at:,} of {size:,}, near {near}, and no event of PyTorch's"
        " could be read; export the trace again"
    ),
    # By the events of a trace in Chrome's format.
    "file-is-ascend": (
        "a trace of Ascend (torch_npu or msprof), whose device work overhead does not read; time"
        " the step on that machine instead: overhead time"
    ),
    "file-is-unitrace": (
        "a trace of Intel's unitrace, which overhead does not read; " + _RECORD_AMD
    ),
    "file-is-old-autograd": (
        "a trace of torch.autograd.profiler before PyTorch 1.8.1, which has no launches; record"
        " the program with torch.profiler (export_chrome_trace)"
    ),
    "file-is-xprof": "a trace of JAX or TensorFlow (XProf), not of PyTorch; " + _JAX,
    "file-is-tensorflow": "a timeline of TensorFlow, not of PyTorch; " + _JAX,
    "file-is-onnx-runtime": (
        "a profile of ONNX Runtime, which has no launches; record the program with nsys profile"
        " --trace cuda,nvtx, and nsys export --type sqlite"
    ),
    "file-is-browser": "a trace of a web browser, not of PyTorch; to explain a step, " + _RECORD,
    "events-without-categories": (
        "not a trace of PyTorch: its events have no categories; to explain a step, " + _RECORD
    ),
    "events-of-other-categories": (
        "not a trace of PyTorch: its categories are {categories}; to explain a step, " + _RECORD
    ),
    # Databases.
    "database-is-rocpd": "a database of rocprofv3 (rocpd), which overhead does not read; "
    + _RECORD_AMD,
    "database-is-nvprof": (
        "a database of nvprof, which overhead does not read; record the program with nsys profile"
        " --trace cuda,nvtx, and nsys export --type sqlite"
    ),
    "database-of-another-program": (
        "a database without the tables of Nsight Systems; its tables are {tables}. To explain a"
        " step, " + _RECORD
    ),
    "database-without-device-tables": (
        "an export of Nsight Systems without calls of CUDA; record the program with nsys profile"
        " --trace cuda,nvtx, and export it again"
    ),
    "database-without-names": (
        "an export of Nsight Systems without the table StringIds, which holds the names of calls;"
        " export the whole report: nsys export --type sqlite"
    ),
    "database-is-damaged": (
        "a database that cannot be read ({message}); export it again: nsys export --type sqlite"
    ),
    "report-not-exported": (
        "a report of Nsight Systems; export it: nsys export --type sqlite {name}"
    ),
    "report-export-failed": (
        "a report of Nsight Systems, which nsys could not export here ({message}); export it where"
        " it was recorded: nsys export --type sqlite {name}"
    ),
}
