"""Read and write fingerprints, and read journals. Decoding is strict, and the size of a file is
limited.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from overhead.bounded_files import read_lines, read_whole
from overhead.errors import BadFile, raising_cannot_write
from overhead.loading.figures import with_sound_figures
from overhead.results import (
    SCHEMA_VERSION,
    Fingerprint,
    HeaderEntry,
    JournalEntry,
    Why,
    because,
    decode_entry,
)

MAX_FINGERPRINT_BYTES = 4_000_000
_MAX_JOURNAL_BYTES = 512_000_000
_LONGEST_NAME = 255
"""Of a file, in bytes: on ext4, APFS and NTFS (there in characters, which are fewer)."""
_PART = ".overhead-part"
_fingerprint_decoder = msgspec.json.Decoder(Fingerprint)


class BrowserDownload(BadFile):
    """The file is what a person downloaded from the browser page, and no fingerprint yet."""


class OtherAnswer(BadFile):
    """The file is the answer of another command, named by its ``format``, and no fingerprint."""

    def __init__(self, reason: Why, path: Path, format: str) -> None:
        super().__init__(reason, path)
        self.format = format


class _Answer(msgspec.Struct):
    format: str


_ANSWERS = {
    "overhead-time": because("answer-of-time"),
    "overhead-explain": because("answer-of-explain"),
}
"""What files of these formats are, and what to do with one."""


def is_journal(path: Path) -> bool:
    """Whether the file name is that of a journal or of raw samples (``.jsonl``, ``.jsonl.gz``)."""
    return path.name.endswith((".jsonl", ".jsonl.gz"))


def files_in_folder(folder: Path) -> list[Path]:
    """The files of runs in a folder, sorted: first the fingerprints (all figures of a run), then
    the journals (raw samples) of runs that did not end and so have no fingerprint.
    """
    fingerprints = sorted(folder.glob("*.json"))
    done = {path.stem for path in fingerprints}
    unfinished = [path for path in sorted(folder.glob("*.jsonl")) if path.stem not in done]
    return [*fingerprints, *unfinished]


def newest_file(folder: Path) -> Path:
    """The file of the newest run in the folder, by the time at which it was written: a fingerprint
    or a journal. Raises ``BadFile`` if there is none. Of equal times the last name counts.
    """
    written = {}
    for path in files_in_folder(folder):
        with contextlib.suppress(OSError):  # a link to a file that is gone
            status = path.stat()
            # A folder or a pipe may have such a name.
            if stat.S_ISREG(status.st_mode):
                written[path] = (status.st_mtime_ns, path.name)
    if not written:
        raise BadFile("there is no file of a run here; overhead run makes one", folder)
    # The greatest pair: by the time of writing, then by name.
    return max(written, key=written.__getitem__)


def read_fingerprint(path: Path) -> Fingerprint:
    """The fingerprint (all figures of a run) in a file. Raises ``BadFile``.

    Figures that nothing proves, or that no measurement can be, have no value: see
    ``with_sound_figures``.
    """
    return with_sound_figures(path, read_as_written(path))


def read_as_written(path: Path) -> Fingerprint:
    """The fingerprint in a file with all values that it gives, also those that ``read_fingerprint``
    takes away because nothing proves them. Raises ``BadFile``, with one line that says what the
    file is if not a run.
    """
    raw = read_whole(path, MAX_FINGERPRINT_BYTES)
    if raw.startswith(b'{"format":"overhead-browser"'):
        raise BrowserDownload(
            f"downloaded from the browser page; convert it: overhead browser --import {path}", path
        )
    try:
        fingerprint = _fingerprint_decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        # No run: the field ``format``, '' if there is none, tells whether another command wrote it.
        # ``_ANSWERS``: for each such format what the file is, and what to do with one.
        format = _format_of(raw)
        if format in _ANSWERS:
            raise OtherAnswer(_ANSWERS[format], path, format) from None
        raise BadFile(f"not the file of a run: {_one_line(error)}", path) from None
    if fingerprint.schema_version != SCHEMA_VERSION:
        raise BadFile(
            f"schema version {fingerprint.schema_version}, this program reads {SCHEMA_VERSION}",
            path,
        )
    return fingerprint


def _format_of(raw: bytes) -> str:
    """The name of the format that a file of another command gives; '' if it gives none."""
    try:
        return msgspec.json.decode(raw, type=_Answer).format
    except (msgspec.DecodeError, RecursionError, ValueError):
        return ""


def read_journal(path: Path, max_bytes: int = _MAX_JOURNAL_BYTES) -> Iterator[JournalEntry]:
    """The entries of a journal, the header first.

    A last line that a crash cut off is dropped. Raises ``BadFile`` for any other bad line, and for
    a file of more than ``max_bytes`` after decompression.
    """
    number = -1
    for number, row in enumerate(read_lines(path, max_bytes)):
        try:
            entry = decode_entry(row)
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            # Only a line that was cut off has no end. Without a first line there is no run.
            is_cut_off = not row.endswith(b"\n")
            if number > 0 and is_cut_off:
                return
            raise BadFile(f"line {number + 1}: {_one_line(error)}", path) from None
        is_first = number == 0
        # The header is the first line, and no other.
        if is_first != isinstance(entry, HeaderEntry):
            wrong = "a second header" if number else "not a journal: no header"
            raise BadFile(f"line {number + 1}: {wrong}", path)
        if isinstance(entry, HeaderEntry) and entry.schema_version != SCHEMA_VERSION:
            raise BadFile(
                f"schema version {entry.schema_version}, this program reads {SCHEMA_VERSION}", path
            )
        yield entry
    has_no_line = number < 0
    if has_no_line:
        raise BadFile("empty", path)


def write_fingerprint(path: Path, fingerprint: Fingerprint) -> None:
    """Write the fingerprint. If this fails, no partial file remains."""
    with replacing(path) as file:
        file.write(formatted(fingerprint))


def formatted(data: object, indent: int = 1) -> bytes:
    """The data as indented JSON, each reason on one row: there are many, and few values in each.

    A reason is an object whose first field is ``code``. Its rows are joined until the one that
    closes it, which has the indentation of the one that opened it.
    """
    rows: list[bytes] = []
    # The indentation of the row that closes the reason which is being joined; None outside of one.
    closing: bytes | None = None
    for row in msgspec.json.format(msgspec.json.encode(data), indent=indent).splitlines():
        is_code = row.lstrip().startswith(b'"code": ')
        if closing is None and is_code and rows and rows[-1].endswith(b"{"):
            closing = _indentation(rows[-1])
        if closing is None:
            rows.append(row)
            continue
        # A comma in front of the next field gets a space behind it; a brace does not.
        space = b" " if rows[-1].endswith(b",") else b""
        rows[-1] += space + row.lstrip()
        if _indentation(row) == closing:
            closing = None
    return b"\n".join(rows) + b"\n"


def _indentation(row: bytes) -> bytes:
    """The spaces that the row begins with."""
    return row[: len(row) - len(row.lstrip())]


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A ``with`` block that writes a file whole or not at all. It gives a new file of another name,
    which gets this path when it is on the disk; after an error, what was at the path stays.
    """
    # Raises for a folder, a device or a pipe, which a new file must not replace.
    _check_regular(path)
    part = part_path(path)
    # A killed run may have left one. What a link or a pipe of this name leads to must not be
    # written.
    part.unlink(missing_ok=True)
    try:
        # "x": a file that somebody else made meanwhile is not written.
        with open(part, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def make_folder(path: Path) -> None:
    """Make the folder and those above it. Raises ``OSError``, which names a loop of links or a link
    to nothing.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        # Something that is no folder is in the way. If it is a bad link, ``stat`` says so.
        for each in (*reversed(path.parents), path):
            if os.path.lexists(each):
                os.stat(each)
        raise NotADirectoryError(errno.ENOTDIR, "exists and is no folder") from None


def save_file(path: Path, data: bytes) -> None:
    """Write a file and make its folder. Raises ``CannotWrite``; then no partial file remains."""
    with raising_cannot_write(path):
        make_folder(path.parent)
        with replacing(path) as file:
            file.write(data)


def check_writable(path: Path) -> None:
    """Raise ``CannotWrite`` if no file can be made at this path, before a command works for long
    for a file that it cannot write. Makes the folder of the file, but not the file.
    """
    with raising_cannot_write(path):
        # Raises for a folder, a device or a pipe, which a new file must not replace.
        _check_regular(path)
        make_folder(path.parent)
        with contextlib.suppress(FileNotFoundError):  # the usual case: there is no such file yet
            os.lstat(path)  # raises for a name that is too long
        with tempfile.TemporaryFile(dir=path.parent):  # raises if the folder takes no new file
            pass


def _check_regular(path: Path) -> None:
    """Raise ``OSError`` for a path that a new file must not replace: a folder, a device, a pipe."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "exists and is no regular file")


def part_path(path: Path) -> Path:
    """The name of a file while it is written. Only this suite uses it, so what a killed run left
    there is replaced.

    Browsers and other programs name what they have not finished ``.part``: that is not ours to
    remove.
    """
    name = path.name
    # Character by character, as one may have several bytes.
    # File systems take names of so many bytes, so the ending replaces the end of a longer one.
    while len(os.fsencode(name)) > _LONGEST_NAME - len(_PART):
        name = name[:-1]
    # "." and "/" have no name; they are folders, which nothing replaces.
    return path.with_name(name + _PART) if name else path / _PART


def _one_line(error: BaseException) -> str:
    """The message of an error of the decoder in one line of at most 300 characters."""
    message = " ".join(str(error).split())
    return message[:300] or type(error).__name__
