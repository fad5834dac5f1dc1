"""The time left of ``overhead contention``: first by the planned periods, then by how long measured
sets took.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from overhead.contention.plan import ContentionPlan
from overhead.runner.progress import Listener
from overhead.runner.time_left import Durations


class ContentionTimeLeft:
    """Tells a listener the time left of a measurement with many peers. It goes group by group
    (cases that are measured in the same processes), and each group has several sets of processes.
    ``sets_s``: of each group how long a set should take. ``clock``: seconds.
    """

    def __init__(
        self,
        plan: ContentionPlan,
        sets_s: Sequence[float],
        listener: Listener,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan = plan
        self._listener = listener
        self._clock = clock
        # ``Durations`` keeps times by kind of work; here each group is a kind.
        self._kinds = [str(number) for number in range(len(sets_s))]
        self._durations = Durations(dict(zip(self._kinds, sets_s, strict=True)))
        self._began_s = clock()
        self._set_began_s = self._began_s
        # The place of the group that runs, and how many of its sets are measured.
        self._at = 0
        self._measured = 0

    def begin(self) -> None:
        """The first group begins now: a wait for other runs is over."""
        self._began_s = self._clock()
        self._set_began_s = self._began_s

    def begin_group(self, at: int) -> None:
        """The group at this position begins; those before it are measured or left out."""
        self._at = at
        self._measured = 0

    def begin_set(self) -> None:
        """A set of the group begins."""
        self._set_began_s = self._clock()

    def end_set(self) -> None:
        """A set of the group is measured."""
        took_s = self._clock() - self._set_began_s
        self._durations.took(self._kinds[self._at], took_s)
        self._set_began_s = self._clock()
        self._measured += 1

    def tell(self) -> None:
        """Tell the seconds until all groups are measured, or until the time of the plan is over."""
        left_s = self._left_of_group_s()
        for kind in self._kinds[self._at + 1 :]:
            left_s += self._plan.sets * self._durations.expected_s(kind)
        limit_s = self._plan.seconds - (self._clock() - self._began_s)
        self._listener.left(max(0.0, min(left_s, limit_s)))

    def _left_of_group_s(self) -> float:
        """Seconds until all sets of the group that runs are measured; 0 if none is left.

        Of the set that runs it is the rest; the later ones take what a set of the group takes.
        """
        sets = self._plan.sets - self._measured
        if sets <= 0 or not self._kinds:
            return 0.0
        kind = self._kinds[self._at]
        # ``_durations`` expects a set to take as long as the last one of its group, or by its plan
        # if there was none. It must know for how long the set that runs has run.
        running_s = self._clock() - self._set_began_s
        self._durations.runs_for(kind, running_s)
        later_s = (sets - 1) * self._durations.expected_s(kind)
        return self._durations.rest_s(kind) + later_s
