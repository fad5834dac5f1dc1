"""Check whether a stack can run a case. The stack lists the allowed values of each parameter."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from overhead.probes.base import Unsupported
from overhead.results import Case, Scalar

AllowedValues = Mapping[str, Collection[Scalar] | None]
"""The allowed values of each parameter; None if the stack checks the value elsewhere."""


def check_parameters(case: Case, allowed: AllowedValues) -> None:
    """Raise ``Unsupported`` if the case has a parameter or a value that is not allowed."""
    unknown = set(case.params) - set(allowed)
    if unknown:
        raise Unsupported(f"no parameter {', '.join(sorted(unknown))} here")
    for name, values in allowed.items():
        if values is not None and name in case.params and case.params[name] not in values:
            raise Unsupported(f"{name} has no value {case.params[name]}")


def accepts(check: Callable[[Case], object], case: Case) -> bool:
    """Whether ``check(case)`` returns without raising ``Unsupported``."""
    try:
        check(case)
    except Unsupported:
        return False
    return True
