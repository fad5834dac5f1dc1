"""The parent controls a worker: it reads the worker's note, and limits the time to release
objects.
"""

from __future__ import annotations

from typing import Any

import pytest

from overhead.runner import workers
from overhead.runner.workers import Job, Note, WorkerProcess


def test_a_parent_reads_the_last_step_that_its_worker_noted() -> None:
    # A note is the index of the case, -1 for none, and what the worker does.
    reader = Note()
    assert reader.read() == (-1, "starting")
    note = Note(reader.path)
    note.write(3, "a long round of samples")
    note.write(4, "opening")
    assert reader.read() == (4, "opening")
    no_text = b"\xff\xff"
    reader.path.write_bytes(no_text.ljust(4096, b"\0"))
    assert reader.read() == (-1, "doing something unknown")
    reader.remove()
    assert not reader.path.exists()
    # A file that another program has deleted is no error.
    deleted = Note()
    deleted.path.unlink()
    assert deleted.read() == (-1, "starting")
    deleted.remove()


def test_workers_that_are_released_together_share_the_time_to_exit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s, waited_s = [100.0], list[float]()

    class Hanging:
        def __init__(self, *_: Any) -> None:
            return

        def send(self, job: object) -> None:
            return

        def end(self, exit_s: float) -> None:
            waited_s.append(exit_s)
            now_s[0] += exit_s

    monkeypatch.setattr(workers, "ChildProcess", Hanging)
    monkeypatch.setattr("overhead.runner.workers.time.monotonic", lambda: now_s[0])
    released, other = [hanging(), hanging()], hanging()
    for one in released:
        one.release()
    for one in released:
        one.end()
    other.end()
    assert waited_s == [workers.RELEASE_S, 0.0, 0.0]


def hanging() -> WorkerProcess:
    return WorkerProcess(Job(worker="w"), {}, silence_s=1.0, memory_bytes=1)
