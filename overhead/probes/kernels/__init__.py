"""Kernel sources by language, shared by all stacks. Their hashes go into the records."""

from __future__ import annotations

import hashlib
from importlib.resources import files

LLVMPIPE_TURNS = 65_535
"""llvmpipe stops the loops of a kernel after this many iterations in total, without an error.

The browser page contains the same number."""


def source(name: str) -> tuple[str, str]:
    """The text of a kernel file (``step.wgsl``) with ``\\n`` as line ends, and its SHA-256."""
    text = files(__name__).joinpath(name).read_text(encoding="utf-8").replace("\r\n", "\n")
    return text, hashlib.sha256(text.encode()).hexdigest()


def binary(name: str) -> tuple[bytes, str]:
    """The bytes of a compiled kernel file (``step.spv``) and their SHA-256."""
    code = files(__name__).joinpath(name).read_bytes()
    return code, hashlib.sha256(code).hexdigest()
