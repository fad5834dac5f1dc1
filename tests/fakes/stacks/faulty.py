"""A stack whose cases fail in all the ways in which a driver can fail. The good cases must still be
measured.

The environment variable ``FAULTS`` lists the faulty cases. The base case is good unless
``BASE_FAULT`` is set. The fault ``once`` kills the first process alone: it creates the file that
``FAULT_FILE`` names.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import time

from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, Unavailable, Unsupported
from overhead.results import Case, Target

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # on Windows either ends the process at once
FAULTS = (
    "open",
    "unsupported",
    "issue",
    "lie",
    "segfault",
    "kill",
    "hang",
    "rubbish",
    "exit",
    "hog",
    "once",
)


class _Counter(Chain):
    synchronous = True

    def __init__(self, fault: str) -> None:
        self.fault, self.count = fault, 0
        self.hoard: list[bytearray] = []

    def issue(self, n: int) -> None:
        if self.fault != "none" and self.count > 50:
            self._fail()
        for _ in range(n):
            self.count += 1

    def wait(self) -> None:
        return

    def executed(self) -> int:
        return self.count - 1 if self.fault == "lie" else self.count

    def _fail(self) -> None:
        match self.fault:
            case "issue":
                raise RuntimeError("the device went away")
            case "segfault":
                os.kill(os.getpid(), signal.SIGSEGV)
            case "once":
                if not os.path.exists(os.environ["FAULT_FILE"]):
                    open(os.environ["FAULT_FILE"], "x").close()
                    os.kill(os.getpid(), KILL)
            case "kill":
                os.kill(os.getpid(), KILL)
            case "hang":
                time.sleep(600)
            case "exit":
                os._exit(3)
            case "rubbish":
                for fd in range(3, 20):
                    with contextlib.suppress(OSError):
                        if stat.S_ISFIFO(os.fstat(fd).st_mode):
                            os.write(fd, b"\n\xff rubbish {]\n")
            case "hog":
                self.hoard.append(bytearray(200 << 20))
                time.sleep(0.05)


@register
class Faulty(Probe):
    name = "faulty"
    title = "cases that misbehave"

    def targets(self) -> list[Target]:
        print("text on standard output does no harm")
        return [Target(stack="faulty", api="CPU", adapter="CPU")]

    def space(self, target: Target) -> Space:
        chosen = os.environ.get("FAULTS", "")
        base = Case(
            pattern="per-submit",
            unit="launch",
            params={"fault": os.environ.get("BASE_FAULT", "none")},
        )
        return Space(base=base, axes={"fault": [f for f in FAULTS if f in chosen.split(",")]})

    def open(self, target: Target, case: Case) -> Chain:
        fault = str(case.params["fault"])
        if fault == "open":
            raise ValueError(f"no such file {os.path.expanduser('~')}/secret")
        if fault == "unsupported":
            raise Unsupported("this device has no such thing")
        return _Counter(fault)


@register
class Absent(Probe):
    name = "absent"
    title = "a stack that is not there"

    def targets(self) -> list[Target]:
        raise Unavailable("the library is not installed", "pip install absent")

    def space(self, target: Target) -> Space:
        raise NotImplementedError

    def open(self, target: Target, case: Case) -> Chain:
        raise NotImplementedError
