"""What a user's own call or step costs, what bounds it, and what would change that; ``overhead.explain(step)``."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from overhead.explain.explaining import Alternatives
    from overhead.explain.record import Explanation
    from overhead.runner.progress import Listener


class _CallablePackage(types.ModuleType):
    def __call__(
        self,
        step: str | Callable[[], object],
        *,
        arguments: Sequence[str] = (),
        against: str | Callable[[], object] = "",
        alternatives: Alternatives = "all",
        seconds: float = 90.0,
        chrome: Path | None = None,
        listener: Listener | None = None,
    ) -> Explanation:
        """Explain a step, as ``overhead.explain.explaining.explain`` does, which describes the arguments."""
        from overhead.explain.explaining import explain
        from overhead.explain.in_words import brief_text
        from overhead.explain.record import Explanation

        Explanation.in_words = brief_text
        return explain(
            step,
            arguments=arguments,
            against=against,
            alternatives=alternatives,
            seconds=seconds,
            chrome=chrome,
            listener=listener,
        )


sys.modules[__name__].__class__ = _CallablePackage
