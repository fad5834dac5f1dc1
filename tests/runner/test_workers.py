"""The parent controls a worker: it reads the worker's note, and limits the time to release objects."""

from __future__ import annotations

from typing import Any

from overhead.runner.protocol import Job
from overhead.runner.workers import RELEASE_S, NoteReader, WorkerNote, WorkerProcess


def test_the_note_contains_the_last_step_that_the_worker_wrote() -> None:
    reader = NoteReader()
    assert reader.read() == (-1, "starting")
    note = WorkerNote(reader.path)
    note.write(3, "a long round of samples")
    note.write(4, "opening")
    assert reader.read() == (4, "opening")
    reader.path.write_bytes(b"\xff\xff".ljust(4096, b"\0"))
    assert reader.read() == (-1, "doing something unknown")
    reader.close()
    assert not reader.path.exists()


def test_a_note_whose_file_was_deleted_can_still_be_read_and_closed() -> None:
    reader = NoteReader()
    reader.path.unlink()
    assert reader.read() == (-1, "starting")
    reader.close()


def test_workers_that_are_released_together_share_the_release_time() -> None:
    now_s, waited_s = [100.0], list[float]()

    class Hanging:
        def __init__(self, *_: Any, **__: Any) -> None:
            return

        def send(self, line: bytes) -> None:
            return

        def end(self, exit_s: float) -> None:
            waited_s.append(exit_s)
            now_s[0] += exit_s

    def hanging() -> WorkerProcess:
        job = Job(worker="w")
        return WorkerProcess(job, {}, silence_s=1.0, memory_bytes=1, start=Hanging, clock=lambda: now_s[0])  # type: ignore[arg-type]

    released, other = [hanging(), hanging()], hanging()
    for one in released:
        one.release()
    for one in released:
        one.end()
    other.end()
    assert waited_s == [RELEASE_S, 0.0, 0.0]
