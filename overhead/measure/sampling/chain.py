"""The interface between a stack and the sampling: a ``Chain`` of identical units of work, open on a
device.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from overhead.results.reason import Why
from overhead.results.vocabulary import Overlap, Scalar

Samples = list[list[int]]
"""Rows ``[n, issue_ns, total_ns]``, or ``[n, issue_ns, total_ns, wait_cpu_ns]`` where the CPU clock
was read too.
"""


@dataclass(frozen=True)
class DeviceTime:
    """Device time of one chain of ``n`` units. The device started the chain only after all of its
    units were queued.

    - ``span``: ns from the start of the first unit to the end of the last unit.
    - ``busy``: true only if the device provably never waited for work inside the span.
    - ``quantum``: the resolution of the device's clock, ns.
    - ``method``: how the span was measured.
    """

    n: int
    span: float
    busy: bool
    quantum: float
    method: Why


class Chain(abc.ABC):
    """A chain of n identical units of work, open on a device. The case says what a unit is.

    A probe's ``open`` returns one; the worker samples it and closes it. ``issue``, ``wait`` and
    ``executed`` are required. Every attribute below may be set on the class or on the instance,
    before ``open`` returns.

    >>> class Additions(Chain):
    ...     synchronous = True
    ...
    ...     def __init__(self) -> None:
    ...         self.total = 0
    ...
    ...     def issue(self, n: int) -> None:
    ...         for _ in range(n):
    ...             self.total += 1
    ...
    ...     def wait(self) -> None:
    ...         return
    ...
    ...     def executed(self) -> int:
    ...         return self.total

    One sample of n = 3, which the worker times from before ``issue`` to after ``wait``:

    >>> chain = Additions()
    >>> chain.prepare(3)
    >>> chain.issue(3)
    >>> chain.wait()
    >>> chain.executed()
    3

    A chain whose loop must run elsewhere (in a browser page, in a child process) overrides
    ``sample`` and ``sample_idle``, and ``units`` if its warm units differ. It still needs ``issue``
    and ``wait`` for work that is not timed.
    """

    overlap: Overlap = "pipelined"
    """Whether the device works while ``issue`` runs. ``pipelined``: the device works while
    ``issue`` runs, so the cost per unit is the larger of CPU time and device time. ``serial``: the
    device starts after ``issue``, so the cost per unit is their sum. The length at which the queue
    is full is looked for in pipelined chains only.
    """
    recorded: bool = False
    """True if ``prepare(n)`` records n units and ``issue(n)`` launches the recording. Each sample
    is then preceded by one warm launch of the same n, instead of one warm unit.
    """
    max_n: int = 1 << 20
    """The largest n that ``issue`` accepts."""
    wait_spins: bool = False
    """True if ``wait`` keeps the CPU busy until the device is done. The CPU clock is then not
    sampled, because CPU time in ``wait`` would say nothing about deferred work.
    """
    synchronous: bool = False
    """True if ``issue`` returns only when the work is done. The CPU clock, the knee and stairs are
    then skipped.
    """
    latency: bool = False
    """True if each unit contains its own wait. Up to 500 samples of T(1) are then taken for
    percentiles.
    """
    executes: bool = True
    """False if nothing runs the work (a null backend). ``executed`` is then only expected to raise
    on errors; its return value is ignored.
    """
    aside: int = 0
    """The number of units that ran and that ``executed`` leaves out, such as those for device
    time.
    """
    counts_device: bool = True
    """False if the units of ``device`` change neither ``executed`` nor ``aside``. Whether they ran
    is not checked.
    """
    flags: Sequence[str] = ()
    """Remarks for the record, such as ``hidden-page``."""
    least_ns: int = 0
    """ns by which T(top) must exceed T(1), at least; 0 for the suite's own minimum. Set it if the
    wait polls rarely or the first units cost more than later ones.
    """
    poll_ns: int = 0
    """ns between two polls of the wait, if T(n) is known to be a staircase; 0 to find out. Needs
    ``sample_idle``.
    """
    clock_step_ns: int = 0
    """ns, the resolution of the clock behind ``sample``; 0 if it is the suite's clock."""

    @property
    def held_n(self) -> int:
        """The largest n that ``device`` can time. The default is ``max_n``."""
        return self.max_n

    @property
    def own_loop(self) -> bool:
        """Whether the chain runs its own sampling loop, that is, whether its class overrides
        ``sample``.

        The first call and the ``stages`` of such a chain are not timed.
        """
        return type(self).sample is not Chain.sample

    def prepare(self, n: int) -> None:
        """Do everything that ``issue(n)`` needs and that must not be timed. It must be cheap when
        repeated for one n.

        Called before every ``issue(n)``, with the same n. The first call for an n may compile or
        record: its time does not count as sampling, up to the sampling time of the process.
        """
        return

    @abc.abstractmethod
    def issue(self, n: int) -> None:
        """Launch n units, and return when the library returns control. This call is timed.

        Called with every n of the ladder, from 0 (nothing to issue) to at most ``max_n``.
        """

    @abc.abstractmethod
    def wait(self) -> None:
        """Return when the device has finished everything that was issued. This call is timed.

        Called once per ``issue``.
        """

    @abc.abstractmethod
    def executed(self) -> int:
        """The number of units that the device has run since ``open``, computed from values that the
        units wrote.

        Called outside the window: after calibration, after the one-off values and after each round.
        The case is dropped as ``unverified`` if the number differs from the units issued. Raises
        ``Unverified``.
        """

    def sample(self, ns: Sequence[int], cpu: bool) -> Samples:
        """Run each n of ``ns`` once, in order, in the chain's own loop.

        Overridden only by chains with their own loop; every sample of such a chain is taken by it.
        ``cpu``: also measure the CPU time of ``wait``; a loop without such a clock returns rows of
        three, and is not asked again.
        """
        raise NotImplementedError(f"{type(self).__name__} has no loop of its own")

    def sample_idle(self, ns: Sequence[int], idle_ms: float) -> Samples:
        """The same without CPU times, after ``idle_ms`` of idle time before each window.

        Required of chains that override ``sample``. Called with n = 1 for ``naive_idle``, and with
        short ladders if ``poll_ns`` is set.
        """
        raise NotImplementedError(f"{type(self).__name__} has no loop of its own that can idle")

    def units(self, ns: Sequence[int]) -> int:
        """The number of units that one sample of each n runs, warm units included.

        Called with every list that was sampled. Override it if ``sample`` warms differently.
        """
        return sum(n + (n if self.recorded else 1) for n in ns)

    def device(self, n: int) -> DeviceTime | None:
        """Device time of one chain of n units; None if the stack cannot measure it. Raises
        ``Unsupported``.

        Called after the ladder is known, with its top, half and a quarter of it, at most
        ``held_n``. It may run any number of units. The case is dropped if ``executed`` falls, or if
        ``executed`` plus ``aside`` does not grow by the ``n`` of the result (see
        ``counts_device``).
        """
        return None

    def stages(self, n: int) -> Mapping[str, Sequence[int]]:
        """Each call's own time in one chain of n units: by stage the duration of every call, ns,
        one clock reading included; under ``clock`` the durations of clock readings alone.

        Called in every round, for the first case of each caller, with n of at most 256 units or
        about 2 ms. The n units count as issued. An empty mapping, with nothing run, if the stack
        has no stages; it is then not called again.
        """
        return {}

    def making(self) -> Mapping[str, tuple[Sequence[int], Sequence[float]]]:
        """The cost of making recordings, by part (capture, instantiate): the units of each
        recording, and ns of each.

        Called once per planned process, after ``device``. It may run any number of units.
        """
        return {}

    def opening(self) -> Mapping[str, float]:
        """The cost of opening the chain, if known: ``compile`` (ns), ``peak_memory`` (resident
        bytes).

        Called once per planned process, after ``open``.
        """
        return {}

    def window(self) -> dict[str, Scalar]:
        """What a sample times: submits, passes, bind changes, arguments, wait, recording,
        validation, precision.

        Called once after ``open``.
        """
        return {}

    def kernels(self) -> dict[str, str]:
        """SHA-256 of each kernel source that the chain runs, by name. Called once after
        ``open``.
        """
        return {}

    def close(self) -> None:
        """Release all memory and handles. Called once, also after a failure."""
        return
