"""Dispatch overhead, measured: what one more piece of work costs through each GPU stack, and who
takes the time.

The public Python API is lazy, so that ``import overhead`` loads nothing heavy. docs/python-api.md
describes it.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "compare", "explain", "load", "lower", "run", "time", "to_pandas"]

_HOMES = {
    "run": "overhead.runner.run",
    "load": "overhead.loading.answers",
    "compare": "overhead.comparing",
    "explain": "overhead.explaining",
    "lower": "overhead.decode.lowering.torch_export",
    "time": "overhead.timing.timing",
    "to_pandas": "overhead.export",
}


def __getattr__(name: str) -> Any:
    """The function of this name, imported from its module at its first use; Python asks here for a
    name that this module lacks. ``_HOMES`` has the module in which each public function is defined;
    ``public_function`` adds checks of the arguments to it.
    """
    if name in _HOMES:
        from overhead.public import public_function

        function = public_function(getattr(importlib.import_module(_HOMES[name]), name))
        function.__module__ = __name__  # pickle finds it here; its home has it without the checks
        globals()[name] = function  # so that Python does not ask here again
        return function
    raise AttributeError(f"module 'overhead' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
