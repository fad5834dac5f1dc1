"""The registry of workloads. Each workload is one file with ``@register``; plugin files can add
more.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from overhead.errors import UsageError
from overhead.registry import Registry, owner_of
from overhead.results import Why
from overhead.slices import of_features
from overhead.workloads.base import Workload

UNROLLED = "recurrence-unrolled"
"""The workload of a loop of many steps of ``recurrence`` that ``torch.compile`` compiled as one
function. Only runs of older versions have this workload, and claims rest on them.
"""


@dataclasses.dataclass(frozen=True)
class StackWork:
    """Work that is no ``Workload`` of this package, because the stacks define it themselves, such
    as the step of a trivial kernel or a token of a language model.

    ``name``: no registered workload may have it. ``runs``: in every run, or only where it is named.
    ``weight``: bytes of its data; ``overhead check`` opens heavier work later. ``needs``: what a
    run of it takes, which is printed before; '' for nothing worth a word.
    """

    name: str
    runs: Literal["always", "named"] = "always"
    weight: int = 0
    needs: Why = ""


_stack_works = {name: StackWork(name) for name in ("step", "mlp-train", "mlp-forward")}
WORKLOADS: Registry[Workload] = Registry(
    "workload", __name__, frozenset({"base", "sources", "equivalence"})
)


def register(cls: type[Workload]) -> type[Workload]:
    """Class decorator of a workload: add it to those that runs measure, by its name. Raises
    ``UsageError`` if the name is in use, or reserved for work that stacks define themselves.
    """
    reserved = stack_works()  # by their names, workloads that stacks define
    if cls.name in reserved:
        names = ", ".join(sorted(reserved))
        raise UsageError(f"the workload name {cls.name!r} is reserved, as are {names}")
    # ``owner_of``: what identifies this definition, also if its file is imported a second time.
    WORKLOADS.add(cls.name, cls(), owner_of(cls))
    return cls


def register_stack_work(work: StackWork) -> None:
    """Reserve the name of work that stacks define themselves; for the module ``workloads`` of a
    slice.
    """
    _stack_works[work.name] = work


def stack_works() -> dict[str, StackWork]:
    """All work that stacks define themselves, by name."""
    of_features("workloads")
    return _stack_works


def when_measured(name: str) -> Literal["always", "full", "named"]:
    """When cases of the workload with this name are measured: in every run (``always``), in the
    thorough profile or where it is named (``full``), or only where it is named (``named``).
    """
    of_stacks = stack_works().get(name)
    if of_stacks is not None:
        return of_stacks.runs
    workload = workloads().get(name)
    # ``heavy``: it takes too long for usual runs.
    return "full" if workload is not None and workload.heavy else "always"


def workloads() -> dict[str, Workload]:
    """All registered workloads by name."""
    return WORKLOADS.items()
