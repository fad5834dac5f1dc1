"""What a step of a user's program costs, what bounds it, and what would change that:
``overhead explain`` and ``overhead.explain``.

The folder is not called ``explain``: Python would then replace the function ``overhead.explain`` by
this package as soon as anything imports a module of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from overhead.explaining.explaining import Alternatives
    from overhead.explaining.record import Explanation
    from overhead.runner.progress import Listener


def explain(
    step: str | Callable[[], object],
    *,
    arguments: Sequence[str] = (),
    against: str | Callable[[], object] = "",
    alternatives: Alternatives = "all",
    seconds: float = 90.0,
    chrome: Path | None = None,
    progress: bool | Listener | None = None,
) -> Explanation:
    """Explain a step of a program: what it costs, what bounds it, and what would change that.

    step: a function without arguments, also a lambda or one of a notebook, or the name of a
        function: "FILE.py:FUNCTION" or "module:function". If it returns something that can be
        called, that is the step.
    arguments: for a function that is named: texts such as "layers=4".
    against: your own alternative, given like the step. It is compared with the step.
    alternatives: "all" tries torch.compile too, which may take minutes. "eager" does not. "none"
        measures the step only.
    seconds: the longest time for all of this, without what compiles.
    chrome: a file for the replayed step, which Perfetto opens.
    progress: True prints what is done now and the first answers to standard error, False prints
        nothing. None: True in a terminal and in a notebook. An object of your own class of
        ``overhead.runner.progress.Listener`` gets them.

    The result prints as the tables of ``overhead explain``. Its attributes are numbers in ns.

    Raises ``UsageError``, one line, for a step that raises, cannot be repeated, is too short or too
    long, hangs or runs out of memory. Ctrl-C raises ``ExplainInterrupted``, whose ``explanation``
    holds what was measured until then.
    """
    from overhead.explaining.explaining import explain as explain_step
    from overhead.runner.progress import listening

    with listening(progress) as listener:
        return explain_step(
            step,
            arguments=arguments,
            against=against,
            alternatives=alternatives,
            seconds=seconds,
            chrome=chrome,
            listener=listener,
        )
