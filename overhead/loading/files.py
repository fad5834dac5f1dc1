"""Read and write fingerprints, and read journals. Decoding is strict, and the size of a file is limited."""

from __future__ import annotations

import contextlib
import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from overhead.errors import BadFile
from overhead.results import SCHEMA_VERSION, Fingerprint, HeaderLine, JournalLine, decode_line

MAX_FINGERPRINT_BYTES = 4_000_000
_MAX_JOURNAL_BYTES = 512_000_000
_MAX_EXPANSION = 200
"""Most bytes per compressed byte, after the first million. Samples reach about 10, a decompression bomb about 1000."""

_fingerprint_decoder = msgspec.json.Decoder(Fingerprint)


def is_journal(path: Path) -> bool:
    """Whether the file name is that of a journal or of raw samples (``.jsonl``, ``.jsonl.gz``)."""
    return path.name.endswith((".jsonl", ".jsonl.gz"))


def read_fingerprint(path: Path) -> Fingerprint:
    """The fingerprint in a file. Raises ``BadFile``."""
    raw = _bounded(path, MAX_FINGERPRINT_BYTES)
    if raw.startswith(b'{"format":"overhead-browser"'):
        raise BadFile(f"{path}: what a page measured by hand; take it in with: overhead browser --import {path}")
    try:
        found = _fingerprint_decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise BadFile(f"{path}: not a fingerprint: {_one_line(error)}") from None
    if found.schema_version != SCHEMA_VERSION:
        raise BadFile(f"{path}: schema version {found.schema_version}, this program reads {SCHEMA_VERSION}")
    return found


def read_journal(path: Path, max_bytes: int = _MAX_JOURNAL_BYTES) -> Iterator[JournalLine]:
    """The lines of a journal, the header first.

    A last line that a crash cut off is dropped. Raises ``BadFile`` for any other bad line, and for a file of more than
    ``max_bytes`` after decompression.
    """
    lines = _bounded(path, max_bytes).split(b"\n")
    tail_is_cut = bool(lines[-1])
    rows = [row for row in lines if row]
    if not rows:
        raise BadFile(f"{path}: empty")
    for number, row in enumerate(rows):
        try:
            line = decode_line(row)
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            if number and tail_is_cut and number == len(rows) - 1:
                return
            raise BadFile(f"{path}: line {number + 1}: {_one_line(error)}") from None
        if (number == 0) != isinstance(line, HeaderLine):
            raise BadFile(
                f"{path}: line {number + 1}: " + ("a second header" if number else "not a journal: no header")
            )
        if isinstance(line, HeaderLine) and line.schema_version != SCHEMA_VERSION:
            raise BadFile(f"{path}: schema version {line.schema_version}, this program reads {SCHEMA_VERSION}")
        yield line


def write_fingerprint(path: Path, fingerprint: Fingerprint) -> None:
    """Write the fingerprint. If this fails, no partial file remains."""
    with replacing(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(fingerprint), indent=1) + b"\n")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A new file that gets this path when it is whole and on the disk. If this fails, no part of it remains."""
    part = part_path(path)
    try:
        with open(part, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def part_path(path: Path) -> Path:
    """The name of a file while it is written."""
    return path.with_name(path.name + ".part")


def _bounded(path: Path, limit: int) -> bytes:
    """The decompressed bytes of the file. Raises ``BadFile`` if there are more than ``limit``."""
    try:
        compressed = path.name.endswith(".gz")
        if compressed:
            limit = min(limit, max(1_000_000, _MAX_EXPANSION * path.stat().st_size))
        with gzip.open(path, "rb") if compressed else open(path, "rb") as file:
            raw = file.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise BadFile(f"{path}: {getattr(error, 'strerror', None) or _one_line(error)}") from None
    if len(raw) > limit:
        raise BadFile(f"{path}: larger than {limit:,} bytes")
    return bytes(raw)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
