"""A person's own call and step: what it costs, what bounds it, and what would change that.

The package can be called: ``overhead.explain(step)`` is ``overhead.explain.explaining.explain(step)``.
"""

from __future__ import annotations

import sys
import types
from typing import Any


class _CallablePackage(types.ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from overhead.explain.explaining import explain

        return explain(*args, **kwargs)


sys.modules[__name__].__class__ = _CallablePackage
