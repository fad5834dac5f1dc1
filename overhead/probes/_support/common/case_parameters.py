"""Checks of a case against what a stack can run. A stack states the values that each parameter may have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from overhead.probes.base import Unsupported
from overhead.results import Case, Scalar

AllowedValues = Mapping[str, Collection[Scalar] | None]
"""The values of each parameter; None where the stack checks the value by itself."""


def check_parameters(case: Case, allowed: AllowedValues) -> None:
    """Raise ``Unsupported`` where the case has a parameter, or a parameter's value, that the stack does not have."""
    unknown = set(case.params) - set(allowed)
    if unknown:
        raise Unsupported(f"no parameter {', '.join(sorted(unknown))} here")
    for name, values in allowed.items():
        if values is not None and name in case.params and case.params[name] not in values:
            raise Unsupported(f"{name} has no value {case.params[name]}")


def accepts(check: Callable[[Case], object], case: Case) -> bool:
    """Whether ``check`` returns for this case; False where it raises ``Unsupported``."""
    try:
        check(case)
    except Unsupported:
        return False
    return True
