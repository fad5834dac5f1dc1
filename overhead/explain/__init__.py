"""What a user's own call or step costs, what bounds it, and what would change that; ``overhead.explain(step)``."""

from __future__ import annotations

import sys
import types
from typing import Any


class _CallablePackage(types.ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from overhead.explain.explaining import explain

        return explain(*args, **kwargs)


sys.modules[__name__].__class__ = _CallablePackage
