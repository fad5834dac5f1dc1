"""What a command may write to: never a file that it reads, never another of its outputs, never what
it did not make.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from overhead.bounded_files import first_bytes
from overhead.errors import CannotWrite, UsageError
from overhead.loading.files import check_writable, part_path

_LOOKED_AT_BYTES = 1 << 12
"""What made a file stands in its first lines. The same words further on are those of somebody's
file about ours.
"""
_PAGE_HEAD = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="overhead %s">
"""
"""How each page of the suite begins, with the command that made it."""
_SQLITE_SUFFIXES = ("-wal", "-shm", "-journal")
"""Of the files beside a database that belong to it: SQLite plays a journal back into it when it is
next opened.
"""


@dataclass(frozen=True)
class Output:
    """A file that a command is to write. ``made``: whether a file that begins so is one that this
    command made.
    """

    path: Path
    made: Callable[[bytes], bool]


def begins_with(start: bytes) -> Callable[[bytes], bool]:
    """For ``Output.made``: the file begins with exactly this."""
    return lambda content: content.startswith(start)


def begins_like(pattern: re.Pattern[bytes]) -> Callable[[bytes], bool]:
    """For ``Output.made``: the file begins with what the pattern matches."""
    return lambda content: pattern.match(content) is not None


def page_of(command: str) -> Callable[[bytes], bool]:
    """For ``Output.made``: the file is a page that this command made."""
    head = _PAGE_HEAD % command.encode()
    # The template may leave empty lines before its first, and Windows writes other ends of lines.
    return lambda content: content.replace(b"\r\n", b"\n").lstrip().startswith(head)


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths name one file, or would name one once they exist: through links, ``..``, or
    other letters.

    Two names that differ only in the case of their letters are one file on some disks. That can be
    seen as soon as one of them exists, so they count as one only while neither does.
    """
    try:
        return os.path.samefile(one, other)
    except OSError:  # one of them does not exist
        # As text, with links and ``..`` resolved.
        first = os.path.realpath(one)
        second = os.path.realpath(other)
        if os.path.lexists(one) or os.path.lexists(other):
            return first == second
        return first.casefold() == second.casefold()


def check_outputs(outputs: Sequence[Output], inputs: Iterable[Path] = ()) -> None:
    """Raise ``UsageError``, one line, for an output of a command that must not be written, before
    the command begins. Makes the folders of the outputs.

    It must be none of the ``inputs``, which the command reads, and no other output; it must be
    possible to write it; and what has its name already must be empty or made by this command.
    """
    read = list(inputs)
    for index, output in enumerate(outputs):
        for other in outputs[:index]:
            # ``_meet``: writing one would touch the other, also by the name that it has until it is
            # whole.
            if _meet(output.path, other.path):
                raise UsageError(
                    f"{output.path}: two options name the same file, the other {other.path}"
                )
        # Nor may it be a file that the command reads.
        check_not_input(output.path, read)
        # Most likely the name of a program of the user, given by mistake.
        if output.path.suffix == ".py":
            raise UsageError(
                f"{output.path}: a Python file is not overwritten; write FILE.json or FILE.html"
            )
        # Raises if no file can be made there, or if what is there is not from this command.
        check_writable(output.path)
        check_replaceable(output)


def check_not_input(path: Path, inputs: Iterable[Path]) -> None:
    """Raise ``UsageError`` if writing this path would replace one of the files that the command
    reads (``inputs``), or a file that SQLite keeps beside a database among them.
    """
    for read in inputs:
        if _meet(path, read):
            # The other name, if a link or ``..`` leads to the same file.
            same = "" if str(path) == str(read) else f", the file {read}"
            raise UsageError(
                f"{path}: this is what the command reads{same}; give the output another name"
            )
        # Such as ``NAME-journal`` and ``NAME-wal``.
        if _is_beside_database(path, read):
            raise UsageError(
                f"{path}: this name belongs to the database {read}, which the command reads; give"
                " another"
            )


def _is_beside_database(path: Path, read: Path) -> bool:
    """Whether writing this path touches a file that belongs to the database ``read``."""
    if not read.name:
        return False
    beside = [read.with_name(read.name + suffix) for suffix in _SQLITE_SUFFIXES]
    return any(_meet(path, each) for each in beside)


def is_made(output: Output) -> bool:
    """Whether what is in the file, if it is there and has anything, is what this command made."""
    content = first_bytes(output.path, _LOOKED_AT_BYTES) if output.path.exists() else b""
    return not content or output.made(content)


def check_replaceable(output: Output) -> None:
    """Raise ``CannotWrite`` if a file is there that this command did not make."""
    if not is_made(output):
        raise CannotWrite(
            f"{output.path}: exists, and this command did not make it, so it is not overwritten;"
            " remove it or give another name"
        )


def _meet(output: Path, other: Path) -> bool:
    """Whether writing the output would touch the other file.

    While a file is written it has another name (``part_path``), so that of either may be the other.
    """
    return (
        same_file(output, other)
        or same_file(part_path(output), other)
        or same_file(output, part_path(other))
    )
