"""Collect the files of many nodes: what a node sends is checked, and saved as soon as it arrives."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import re
import shlex
import tarfile
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath

import psutil

from overhead.blocks.parts import Table
from overhead.child import last_line
from overhead.commands import DONE, GATE, INTERRUPTED, answer
from overhead.errors import BadFile, UsageError, one_line
from overhead.loading import files
from overhead.runner.progress import Progress

END_S = 20.0
"""Seconds that a script has beyond the limit of a node to end and to send the files, and a task of Ray to start."""
_MOST_BYTES = 64 << 20
_MOST_FILES = 20
_TOO_MUCH = f"sent more than {_MOST_BYTES >> 20} MiB or {_MOST_FILES} files; nothing was saved"
_TIMED_OUT = 124
"""What the program ``timeout`` returns if it ended another one."""
_BEGIN = b"the files of overhead:\n"
_FILE = re.compile(r"[A-Za-z0-9][\w.-]{0,200}\.(json|jsonl|gz)", re.ASCII)
_INTERRUPTED: tuple[list[str], str] = ([], "interrupted")

Sent = tuple[int, bytes, bytes]
"""What a node sent: the exit code of its script, its standard output, its standard error."""
Measure = Callable[[], Awaitable[Sent]]
"""A function that measures one node. It raises ``UsageError`` with the reason if the node gives no files."""


def node_script(command: str, words: Iterable[str], limit_s: float) -> str:
    """The shell script, in one line, that measures a node and writes the files to standard output, as a tar archive.

    ``command``: how the shell calls overhead. ``words``: the arguments. ``limit_s``: seconds until it is ended.
    """
    run = shlex.quote(f'{command} {shlex.join(words)} --out "$0"')
    make = 'd=$(mktemp -d) || exit 1; trap \'rm -rf "$d"\' EXIT; mkdir "$d/out" "$d/tmp"'
    limit = f"limit=$(command -v timeout >/dev/null && echo timeout -k 10 {max(1, round(limit_s))})"
    measure = f'OVERHEAD_SCRATCH="$d/tmp" $limit sh -c {run} "$d/out" </dev/null >/dev/null 2>"$d/errors"; code=$?'
    tell = f'tail -c 2000 "$d/errors" >&2; echo "{_BEGIN.decode().strip()}"'
    send = 'COPYFILE_DISABLE=1 tar -C "$d/out" -cf - . && exit $code'  # tar of macOS: no files of attributes
    return "; ".join([make, limit, measure, tell, send])


async def run_program(command: Sequence[str], limit_s: float) -> Sent:
    """What a program gives. If it was ended after ``limit_s`` seconds, nothing but the exit code of ``timeout``."""
    null, pipe = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdin=null, stdout=pipe, stderr=pipe, start_new_session=True
    )
    try:
        async with asyncio.timeout(limit_s):
            output, errors = await asyncio.gather(_all(process, process.stdout), _all(process, process.stderr))
            return await process.wait(), output, errors
    except TimeoutError:
        return _TIMED_OUT, b"", b""
    finally:
        _kill(process)
        await process.wait()


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(psutil.Error):
        own = psutil.Process(process.pid)
        for each in [own, *own.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()


async def _all(process: asyncio.subprocess.Process, stream: asyncio.StreamReader | None) -> bytes:
    """All that the process writes to this stream. Raises ``BadFile`` for too much, after killing the process."""
    read = bytearray()
    while stream is not None and (chunk := await stream.read(1 << 16)):
        read += chunk
        if len(read) > _MOST_BYTES:
            _kill(process)
    if len(read) > _MOST_BYTES:
        raise BadFile(_TOO_MUCH)
    return bytes(read)


def files_of(output: bytes) -> dict[str, bytes]:
    """The files that a node sent, by name without folders.

    Raises ``BadFile`` for anything but a few fingerprints and samples of a limited size.
    """
    found: dict[str, bytes] = {}
    size = 0
    with tarfile.open(fileobj=io.BytesIO(output.partition(_BEGIN)[2]), mode="r:") as archive:
        for member in archive:
            if member.isdir():
                continue
            path = PurePosixPath(member.name)
            content = archive.extractfile(member) if member.isreg() else None
            if content is None or ".." in path.parts or path.is_absolute() or not _FILE.fullmatch(path.name):
                raise BadFile(f"sent {member.name}, which is no file of a run; nothing was saved")
            size += member.size  # of a sparse file: with its holes
            if size > _MOST_BYTES or len(found) == _MOST_FILES:
                raise BadFile(_TOO_MUCH)
            found[path.name] = content.read()
    return found


def save(sent: Sent, folder: Path, limit_s: float) -> tuple[list[str], str]:
    """Save the files of a node; returns their paths, and what was wrong. Raises ``UsageError``."""
    code, output, errors = sent
    found = files_of(output) if _BEGIN in output else {}
    paths = {folder / name: content for name, content in found.items() if content}
    for path, content in paths.items():
        if path.exists():
            raise UsageError(f"{path}: exists; measured results are not overwritten")
        files.save_file(path, content)
    said = last_line(errors.decode(errors="replace")) or f"exit code {code}, {len(paths)} files"
    if code == _TIMED_OUT:
        said = f"not done within {limit_s:g} s, so it was ended"
    return sorted(map(str, paths)), said if code or not paths else ""


def collect_files(a: argparse.Namespace, opened: AbstractContextManager[Mapping[str, Measure]]) -> int:
    """Measure all nodes at once, save what each sends, print a table of the nodes; returns the exit code."""
    found: dict[str, tuple[list[str], str]] = {}
    with Progress() as listener, opened as nodes:
        files.check_writable(a.out / "file")

        async def collect(name: str) -> None:
            try:
                found[name] = save(await nodes[name](), a.out / name, a.node_limit)
            except Exception as error:
                found[name] = [], str(error) if isinstance(error, UsageError) else one_line(error)
            if not found[name][0]:
                with contextlib.suppress(OSError):  # an empty folder tells ``overhead fleet`` that the node is missing
                    files.make_folder(a.out / name)
            listener.working(f"{len(found)} of {len(nodes)} nodes")
            if reason := found[name][1]:
                listener.note(f"{name}: {reason}")

        async def collect_all() -> None:
            await asyncio.gather(*map(collect, nodes))

        try:
            asyncio.run(collect_all())
        except KeyboardInterrupt:
            found = dict.fromkeys(nodes, _INTERRUPTED) | found
    rows = [(name, str(len(paths)), reason) for name, (paths, reason) in found.items()]
    data = {name: {"files": paths, "reason": reason} for name, (paths, reason) in found.items()}
    answer(a, lambda: data, [Table(f"Files of the nodes, in {a.out}", ["node", "files", ""], rows)])
    if _INTERRUPTED in found.values():
        return INTERRUPTED
    failed = a.require and any(reason for _, reason in found.values())
    return GATE if failed or not any(paths for paths, _ in found.values()) else DONE
