"""One run of the soak: ``overhead run`` with a short plan, its own device lock, and perhaps a fault of its disk.

``SOAK_FOLDER``: the folder of the lock. ``SOAK_FAULT``: ``kill`` or ``full``, a colon, and the step of ``Disk``: its
index, or its name, ``#`` and the index among the steps of that name.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import cast
from unittest import mock

from overhead import locks
from overhead.cli import program
from overhead.profiles import PROFILES, Plan
from tests.fakes.disk import Disk, Fault

SOAK_PLAN = Plan(processes=3, target=0.5, sampling_s=1.0, wall_s=None, case_s=0.05, min_rounds=4, max_rounds=6)


def _end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _disk() -> Disk:
    fault, _, where = os.environ.get("SOAK_FAULT", "").partition(":")
    name, _, number = where.rpartition("#")
    at = (name, int(number)) if name else int(number or -1)
    return Disk(at, cast(Fault, fault), _end)


if __name__ == "__main__":
    with (
        _disk().installed(),
        mock.patch.dict(PROFILES, quick=SOAK_PLAN),
        mock.patch.object(locks, "shared_folder", return_value=Path(os.environ["SOAK_FOLDER"])),
    ):
        program()
