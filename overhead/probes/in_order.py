"""A ready chain for the usual stack, a queue that runs its work in order. Give three calls, get
three patterns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from numbers import Integral

from overhead.probes.base import Chain, DeviceTime, Unsupported
from overhead.probes.common.loops import Action, Issue, alternating, nothing, repeated
from overhead.results import Case, Scalar, because


class InOrderChain(Chain):
    """A chain on a queue that runs its work in order. A unit is one call of the function
    ``launch``.

    - ``launch()`` puts one unit into the queue.
    - ``finish()`` returns when everything in the queue has run.
    - ``read()`` returns when a value of the last unit has reached the host. Without ``read``, the
      pattern ``read-each`` is unsupported.
    - ``count()`` returns how many units have run, counted from values that the units wrote.
    - ``window`` says what is timed, such as ``{"operation": "x = x * a + b", "wait": "clFinish"}``.
    - ``device(n)`` returns the device time of n units; see ``Chain.device``.
    - ``loop(n)`` issues n units, if that is faster than n calls of ``launch``.
    - ``synchronous`` is True if ``launch`` returns only when the work is done.

    Give a bound method or a ``functools.partial`` for ``launch``: a Python function around the call
    adds about 50 ns to each unit.

    The chain sets ``latency`` and ``overlap`` by the pattern, which is ``per-submit``,
    ``wait-each`` or ``read-each``. Any other pattern raises ``Unsupported``.

    >>> from overhead.results import Case >>> done = [] >>> chain =
    InOrderChain(Case(pattern="wait-each"), lambda: done.append(1), lambda: None, count=lambda:
    len(done)) >>> chain.warm_up(2) >>> chain.issue(3) >>> chain.wait() >>> chain.executed(),
    len(done), chain.latency (3, 5, True)
    """

    def __init__(  # noqa: PLR0913 - a frozen public interface
        self,
        case: Case,
        launch: Action,
        finish: Action,
        read: Action | None = None,
        *,
        count: Callable[[], int],
        window: Mapping[str, Scalar] | None = None,
        device: Callable[[int], DeviceTime | None] | None = None,
        loop: Issue | None = None,
        synchronous: bool = False,
    ) -> None:
        """Check the given calls, and put together the loop of the case's pattern. Raises
        ``TypeError`` for what cannot be called, and ``Unsupported`` for another pattern.

        ``launch`` puts a unit into the queue, ``finish`` waits for all units, ``read`` waits for a
        value of the last one, and ``count`` tells how many have run. See the class for the others.
        """
        required = {"launch": launch, "finish": finish, "count": count}
        optional = {"read": read, "device": device}
        given = {name: call for name, call in optional.items() if call is not None}
        for name, call in {**required, **given}.items():
            if not callable(call):
                raise TypeError(
                    f"{name} is {call!r:.100}; it must be a function, given without calling it"
                )

        # What follows each launch; ``nothing`` is a function that does nothing.
        after_launch = {"per-submit": nothing, "wait-each": finish, "read-each": read}
        after = after_launch.get(case.pattern)
        if after is None:  # another pattern, or ``read-each`` without ``read``
            raise Unsupported(because("queue-has-no-pattern", pattern=case.pattern))

        # ``synchronous``: ``launch`` returns only when its work is done.
        self.synchronous = synchronous
        self.latency = case.pattern != "per-submit"  # each unit waits for itself
        # Where each launch waits, host and device never work at the same time.
        self.overlap = "serial" if self.latency or synchronous else "pipelined"
        # Two underscores: so a subclass cannot overwrite these names by chance. A given loop only
        # launches, so it is not used where something follows each launch.
        if self.latency:
            self.__issue = alternating(launch, after)
        else:
            self.__issue = loop or repeated(launch)
        self.__launch = launch
        self.__finish = finish
        self.__after_launch = after
        self.__count = count
        self.__device_time = device
        self.__window = dict(window or {})

    def issue(self, n: int) -> None:
        """Launch n units. With ``wait-each`` and ``read-each``, wait or read after each of them."""
        self.__issue(n)

    def wait(self) -> None:
        """Return when everything in the queue has run."""
        self.__finish()

    def executed(self) -> int:
        """The number of units that have run according to ``count``, without those of ``warm_up``
        and ``device``.
        """
        count: object = self.__count()
        if not isinstance(count, Integral):
            raise TypeError(f"count returned {count!r:.100}; it must be a number of units")
        # ``aside``: how many units ran that do not count.
        return int(count) - self.aside

    def warm_up(self, n: int) -> None:
        """Run n units and wait for them. They do not count as executed."""
        self.aside += n
        self.__issue(n)
        self.__finish()

    def leftover(self, n: int) -> tuple[int, int]:
        """Times of two calls of ``finish``, ns: one after n launches, and one after n launches and
        what follows each launch in this pattern, a wait or a read.

        ``overhead check`` compares the two, to test the given functions. If that wait or read
        returns only when the last unit has run, as it should, the second call finds nothing to
        wait for and is much shorter. The units do not count as executed.
        """
        after_launches_ns = self.__time_of_finish(n, nothing)
        after_pattern_ns = self.__time_of_finish(n, self.__after_launch)
        return after_launches_ns, after_pattern_ns

    def __time_of_finish(self, n: int, first: Action) -> int:
        """How long ``finish`` takes after n launches and one call of ``first``, ns."""
        # So that ``executed`` does not count them.
        self.aside += n
        for _ in range(n):
            self.__launch()
        first()
        began = time.perf_counter_ns()
        self.__finish()
        return time.perf_counter_ns() - began

    def device(self, n: int) -> DeviceTime | None:
        """Device time of n units, which do not count as executed; None if each unit waits or
        ``device`` is None.
        """
        if self.__device_time is None or self.latency:
            return None
        # So that ``executed`` does not count them.
        self.aside += n
        return self.__device_time(n)

    def window(self) -> dict[str, Scalar]:
        """What is timed, as names and values for the results file."""
        return self.__window
