"""Read the files of other people: only regular files, and at most a given number of bytes."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple, cast

from overhead.errors import BadFile

_CHUNK_BYTES = 1 << 20
_LONGEST_LINE_BYTES = 16 << 20
_MAX_EXPANSION = 200
"""Most bytes per compressed byte, after the first million. Samples reach about 10, a decompression
bomb about 1000.
"""


class DamagedFile(BadFile):
    """A packed file that cannot be unpacked."""


class _CutFile(BadFile):
    """A packed file that ends too early."""


def read_whole(path: Path, limit: int, *, packed: bool | None = None) -> bytes:
    """The bytes of a regular file, decompressed if it is ``packed`` by gzip: None if its name tells
    that (``.gz``).

    Raises ``BadFile`` if there are more than ``limit`` bytes, or if the file cannot be read.
    """
    return b"".join(_chunks(path, limit, packed))


class BytesRead(NamedTuple):
    """What was read of a file. ``is_cut``: whether it is packed and ends too early, as after a
    crash or a copy that was stopped; then these are the bytes before that.
    """

    content: bytearray
    is_cut: bool


def read_until_cut(path: Path, limit: int, *, packed: bool) -> BytesRead:
    """The bytes of a regular file like ``read_whole``, and of a packed file that is cut those that
    are there. Raises ``BadFile`` for other faults.
    """
    content = bytearray()  # joined pieces would need the memory twice
    try:
        for chunk in _chunks(path, limit, packed):
            content += chunk
    except _CutFile:
        return BytesRead(content, is_cut=True)
    return BytesRead(content, is_cut=False)


def first_bytes(path: Path, count: int) -> bytes:
    """The first bytes of a regular file as they are, at most ``count``. Raises ``BadFile``."""
    try:
        with _regular(path) as file:
            return file.read(count)
    except OSError as error:
        raise BadFile(error.strerror or str(error), path) from None


def read_lines(path: Path, limit: int) -> Iterator[bytes]:
    """The lines of a file, read as by ``read_whole``. All end with a line break, except a last one
    that was cut off.

    Raises ``BadFile`` like ``read_whole``, and for a line of more than 16 MiB.
    """
    rest = b""  # a line whose end has not been read yet
    for chunk in _chunks(path, limit):
        start = 0
        # ``end``: the place behind the next line break; 0 if there is none, as ``find`` gives -1.
        while (end := chunk.find(b"\n", start) + 1) > 0:
            yield rest + chunk[start:end]
            rest, start = b"", end
        rest += chunk[start:]
        if len(rest) > _LONGEST_LINE_BYTES:
            raise BadFile(f"a line larger than {_LONGEST_LINE_BYTES:,} bytes", path)
    if rest:
        yield rest


def _chunks(path: Path, limit: int, packed: bool | None = None) -> Iterator[bytes]:
    """The bytes of the file in pieces, at most ``limit`` of them, else ``BadFile``.

    ``packed``: whether they are decompressed; None where the name of the file tells it. A packed
    file may be unpacked to many times its size, so it has a limit of its own too.
    """
    try:
        with _regular(path) as file:
            if packed is None:
                packed = path.name.endswith(".gz")
            source = file
            if packed:
                size = os.fstat(file.fileno()).st_size
                # At most 200 times its size: a file of samples expands 10 times, one made to fill
                # the memory 1000 times. A small file may expand by more: it stays below 1 MB.
                limit = min(limit, max(1_000_000, _MAX_EXPANSION * size))
                source = cast(BufferedReader, gzip.GzipFile(fileobj=file, mode="rb"))
            # Bytes so far, after unpacking.
            read_bytes = 0
            # ``read1`` of a packed file gives what is there before the place where it is cut.
            read = source.read1 if packed else source.read
            while chunk := read(_CHUNK_BYTES):
                read_bytes += len(chunk)
                if read_bytes > limit:
                    raise BadFile(f"larger than {limit:,} bytes", path)
                yield chunk
    except EOFError as error:
        raise _CutFile(" ".join(str(error).split())[:300], path) from None
    except (OSError, zlib.error) as error:
        # An error of the system has a short text of its own (``strerror``), one of gzip a message;
        # without both the name of its class is told.
        cause = getattr(error, "strerror", None)
        message = " ".join(str(error).split())[:300]
        if isinstance(error, zlib.error | gzip.BadGzipFile):
            raise DamagedFile(message, path) from None
        raise BadFile(cause or message or type(error).__name__, path) from None


def _regular(path: Path) -> BufferedReader:
    """The open file. Raises ``BadFile`` for anything but a regular file: a pipe would block, a
    device may never end.
    """
    # O_NONBLOCK: to open a pipe would wait for its writer. Windows has no such flag, and only
    # Windows has O_BINARY.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    opened = os.open(path, flags)
    # Asked of the open file, which cannot be exchanged for another one in between.
    mode = os.fstat(opened).st_mode
    if not stat.S_ISREG(mode):
        os.close(opened)
        raise BadFile("a folder" if stat.S_ISDIR(mode) else "not a regular file", path)
    return os.fdopen(opened, "rb")
