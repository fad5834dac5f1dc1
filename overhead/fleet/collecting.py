"""Collect the files of many nodes: what a node sends is checked, and saved as soon as it
arrives.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
import shlex
import tarfile
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import psutil

from overhead.child import last_line
from overhead.errors import BadFile, UsageError, one_line
from overhead.loading import files
from overhead.results import Why, about, because
from overhead.runner.progress import Progress

END_S = 20.0
"""Seconds that a script has beyond the limit of a node to end and to send the files, and a task of
Ray to start. Chosen, not measured: with less, a node that ended in time may lose its files.
"""
_MOST_BYTES = 64 << 20
_MOST_FILES = 20
_TIMED_OUT = 124
"""What the program ``timeout`` returns if it ended another one."""
_BEGIN = b"the files of overhead:\n"
"""The line before the archive: the shell of a node may print something first."""
_FILE = re.compile(r"[A-Za-z0-9][\w.-]{0,200}\.(json|jsonl|gz)", re.ASCII)
"""The names of the files of a run."""


class Sent(NamedTuple):
    """What a node sent: the exit code of its script, its standard output, its standard error."""

    code: int
    output: bytes
    errors: bytes


Measure = Callable[[], Awaitable[Sent]]
"""A function that measures one node. It raises ``UsageError`` with the reason if the node gives no
files.
"""


def node_script(command: str, words: Iterable[str], limit_s: float) -> str:
    """The shell script, in one line, that measures one node of a cluster and writes the files of
    its run to standard output, as a tar archive. It is ``node.sh`` with its placeholders filled in;
    one line, since a login shell may take no line breaks.

    ``command``: how the shell calls overhead. ``words``: the arguments. ``limit_s``: seconds until
    it is ended.
    """
    # One line: comments are left out, since they would end it.
    source = Path(__file__).with_name("node.sh").read_text("utf-8").splitlines()
    script = "; ".join(row for row in source if not row.startswith("#"))
    # ``$0``: the script calls ``sh -c RUN FOLDER``, which makes the folder this variable.
    run = shlex.quote(f'{command} {shlex.join(words)} --out "$0"')
    # BEGIN: the line that the script prints before the archive, by which a reader finds it.
    script = script.replace("BEGIN", _BEGIN.decode().strip())
    # At least 1: for the program ``timeout`` 0 is no limit.
    script = script.replace("LIMIT_S", str(max(1, round(limit_s))))
    # The command comes last: it may hold the other placeholders.
    return script.replace("RUN", run)


async def run_program(command: Sequence[str], limit_s: float) -> Sent:
    """Run a program and return what it sent: exit code, standard output and standard error. After
    ``limit_s`` seconds it and its children are killed; the result is then empty, with the exit code
    that ``timeout`` would give.
    """
    pipe = asyncio.subprocess.PIPE
    # In a session of its own, so that Ctrl-C of the terminal does not reach it.
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(limit_s):
            output, errors = await asyncio.gather(
                _all_of(process, process.stdout), _all_of(process, process.stderr)
            )
            return Sent(await process.wait(), output, errors)
    except TimeoutError:
        return Sent(_TIMED_OUT, b"", b"")
    # Whatever happened, neither it nor its children stay behind.
    finally:
        _kill(process)
        await process.wait()


def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill the process and all that it has started."""
    with contextlib.suppress(psutil.Error):
        parent = psutil.Process(process.pid)
        for each in [parent, *parent.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()


async def _all_of(
    process: asyncio.subprocess.Process, stream: asyncio.StreamReader | None
) -> bytes:
    """All that the process writes to this stream. A node is not trusted to send little: beyond a
    limit the process is killed, and ``BadFile`` is raised.
    """
    read = bytearray()
    while stream is not None:
        chunk = await stream.read(1 << 16)
        if not chunk:
            break
        read += chunk
        # Killed, it writes no more, and reading comes to the end.
        if len(read) > _MOST_BYTES:
            _kill(process)
    _check_amount(len(read))
    return bytes(read)


def _check_amount(size: int, count: int = 0) -> None:
    """Raise ``BadFile`` if a node sent more bytes or files than a run gives."""
    if size > _MOST_BYTES or count > _MOST_FILES:
        raise BadFile(
            f"sent more than {_MOST_BYTES >> 20} MiB or {_MOST_FILES} files; nothing was saved"
        )


def files_of(output: bytes) -> dict[str, bytes]:
    """The files in the tar archive that a node sent, by name without folders.

    Raises ``BadFile`` for anything but a few fingerprints and samples of a limited size: a node
    must not be able to write elsewhere on this machine.
    """
    found: dict[str, bytes] = {}
    size = 0
    # What the shell of the node printed before the archive is skipped.
    archive_bytes = io.BytesIO(output.partition(_BEGIN)[2])
    # ``r:``: only an archive without compression.
    with tarfile.open(fileobj=archive_bytes, mode="r:") as archive:
        for member in archive:
            if member.isdir():
                continue
            path = PurePosixPath(member.name)
            is_inside = ".." not in path.parts and not path.is_absolute()
            # Only plain files: no links and no devices.
            content = archive.extractfile(member) if member.isreg() else None
            if content is None or not is_inside or not _FILE.fullmatch(path.name):
                raise BadFile(f"sent {member.name}, which is no file of a run; nothing was saved")
            size += member.size  # of a sparse file: with its holes
            # Raises for more files or bytes than a run gives, before this one is read.
            _check_amount(size, len(found) + 1)
            found[path.name] = content.read()
    return found


@dataclass(frozen=True)
class Collected:
    """What a node sent. ``files``: where they were saved. ``reason``: what was wrong; '' if
    nothing.
    """

    files: Sequence[str]
    reason: Why = ""


_INTERRUPTED = Collected([], because("node-interrupted"))


def save(sent: Sent, folder: Path, limit_s: float) -> Collected:
    """Save the files that a node sent to its folder, and say what was wrong: the time was over, or
    the last line of its errors, or its exit code. What arrived is saved in any case. Raises
    ``UsageError`` if a file exists already.
    """
    contents = files_of(sent.output) if _BEGIN in sent.output else {}
    saved = []
    for name, content in contents.items():
        # An empty file holds nothing of the run.
        if not content:
            continue
        path = folder / name
        if path.exists():
            raise UsageError(f"{path}: exists; measured results are not overwritten")
        files.save_file(path, content)
        saved.append(str(path))
    saved.sort()
    # Why not all arrived: the time limit, the last line of the errors, or the exit code.
    if sent.code == 0 and saved:
        return Collected(saved)
    if sent.code == _TIMED_OUT:
        return Collected(saved, because("node-not-done", limit_s=limit_s))
    error = last_line(sent.errors.decode(errors="replace"))
    return Collected(saved, error or because("node-exit-code", code=sent.code, files=len(saved)))


def collect_files(
    out: Path, limit_s: float, opened: AbstractContextManager[Mapping[str, Measure]]
) -> dict[str, Collected]:
    """Measure all nodes at once, and save what each sends, as soon as it arrives, to its folder in
    ``out``. A node that fails does not stop the others: its reason is in the result. ``opened``: a
    ``with`` block that gives the nodes, by name a function that measures one.
    """
    found: dict[str, Collected] = {}
    with Progress() as listener, opened as nodes:
        # Before anything is measured: whether a file can be made there.
        files.check_writable(out / "file")

        # Measures one node, and notes what it sent or why nothing.
        async def collect(name: str) -> None:
            try:
                found[name] = save(await nodes[name](), out / name, limit_s)
            except UsageError as error:
                found[name] = Collected([], error.why)
            except Exception as error:  # whatever a cluster raises, the other nodes go on
                found[name] = Collected([], one_line(error))
            if not found[name].files:
                # An empty folder tells ``overhead fleet`` that the node is missing.
                with contextlib.suppress(OSError):
                    files.make_folder(out / name)
            listener.working(f"{len(found)} of {len(nodes)} nodes")
            reason = found[name].reason
            if reason:
                listener.note(about(name, reason))

        async def collect_all() -> None:
            await asyncio.gather(*map(collect, nodes))

        try:
            asyncio.run(collect_all())
        except KeyboardInterrupt:
            # What has arrived is saved; the other nodes count as interrupted.
            return {name: found.get(name, _INTERRUPTED) for name in nodes}
    return found


def was_interrupted(found: Mapping[str, Collected]) -> bool:
    """Whether the collecting ended before all nodes had sent what they have."""
    return _INTERRUPTED in found.values()
