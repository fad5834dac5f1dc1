"""The registry of stacks, and questions to a stack whose answers are checked.

A stack is a class with ``@register``, in a file or a folder of its family here, in a slice (a
feature in one folder), in another package or in a ``--plugin`` file.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Container, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import msgspec

from overhead.errors import BadPlugin, BadValue, one_line
from overhead.fields import checked, is_utf8
from overhead.probes.arms import with_arms
from overhead.probes.base import Probe, Space
from overhead.probes.common import entry_points
from overhead.probes.common.availability import cannot_here
from overhead.registry import Registry, owner_of
from overhead.results import (
    Case,
    MissingStack,
    Reason,
    StackFacts,
    Target,
    Why,
    about,
    because,
    own_stacks,
)
from overhead.workloads import WORKLOADS

_registry: Registry[Probe] = Registry(
    "stack",
    __name__,
    skip=frozenset(
        {"arms", "base", "common", "held_chain", "in_order", "kernels", "workload_chain"}
    ),
    in_features="stacks",
)
_REGISTRIES: tuple[Registry[Any], ...] = (_registry, WORKLOADS)
_plugins: set[str] = set()
_unavailable: list[MissingStack] = []
_usable: list[str] = []
_allowed: Container[str] | None = None
"""The entry points that this process may load, all of them tried by its parent; None: any."""


def register(cls: type[Probe]) -> type[Probe]:
    """Class decorator: register one instance by the ``name`` of the class, and return the class.

    Raises ``BadValue`` for a bad attribute, and ``UsageError`` if another stack has the name.
    """
    cls.check_attributes()
    # The owner is a text that stays the same if a file is imported a second time, so that its class
    # may replace itself.
    _registry.add(cls.name, cls(), owner_of(cls))
    return cls


def registry() -> dict[str, Probe]:
    """All stacks by name, sorted. The first call imports the built-in ones, then those of installed
    packages.
    """
    is_first_call = _registry.load()
    # Later calls find the stacks of packages in the registry already.
    if is_first_call:
        _load_installed_packages()
    return _registry.items()


def _load_installed_packages() -> None:
    """Load the stacks of other installed packages, which name their modules by entry points.

    Each module is imported in a child process first, because it may crash. A worker process does
    not: its parent has tried them, and tells it which it may load (``allow_entry_points``). What
    cannot be loaded is kept with the reason in ``_unavailable``, and what can in ``_usable``, as
    the text ``name = module`` (``text_of``), which the parent passes to its workers.
    """
    declared = importlib.metadata.entry_points(group=entry_points.GROUP)
    # In a fixed order, because of two packages with the same name of a stack the first gets it.
    entries = sorted(declared, key=entry_points.text_of)
    reasons: list[Why]
    # None in the parent process. A worker may load what its parent has tried.
    if _allowed is None:
        reasons = entry_points.import_failures(entries)
    else:
        entries = [entry for entry in entries if entry_points.text_of(entry) in _allowed]
        # '': the trial did not fail.
        reasons = [""] * len(entries)

    for entry, trial_failure in zip(entries, reasons, strict=True):
        reason = trial_failure or load_entry_point(entry)
        if reason:
            _unavailable.append(entry_points.missing_record(entry, reason))
        else:
            _usable.append(entry_points.text_of(entry))


def facts_of_stack(name: str) -> StackFacts:
    """The facts of a registered stack: the suite's of its own stacks, else those of the probe."""
    facts = own_stacks().get(name)
    if facts is not None:
        return facts
    probe = registry()[name]
    return msgspec.structs.replace(probe.facts, label=probe.facts.label or probe.title)


def stacks_with(role: str) -> list[str]:
    """The names of the registered stacks that have this role, such as being a WebGPU library: the
    suite's own in the order of its list of stacks, then those of others by name.
    """
    # ``own_stacks`` lists the stacks of the suite; some of them may not be registered here.
    registered = registry()
    ours = [name for name in own_stacks() if name in registered]
    others = [name for name in registered if name not in own_stacks()]
    return [name for name in [*ours, *others] if role in facts_of_stack(name).roles]


def unavailable_packages() -> list[MissingStack]:
    """The installed packages whose stacks cannot be used, each with the reason."""
    registry()
    return list(_unavailable)


def usable_entry_points() -> list[str]:
    """The entry points of installed packages that were loaded, as ``name = module``, for
    ``allow_entry_points``.
    """
    registry()
    return list(_usable)


def allow_entry_points(allowed: Container[str]) -> None:
    """Let ``registry`` load only these entry points, without a trial in a child process: the parent
    has tried them.
    """
    global _allowed
    _allowed = allowed


def unload_plugin(path: Path, stack: str) -> None:
    """Forget a plugin file and its stack, so that ``load_plugin`` imports the file again."""
    _registry.remove(stack)
    _plugins.discard(os.path.realpath(path))


@contextlib.contextmanager
def _importing(package: str = "") -> Iterator[list[list[str]]]:
    """A ``with`` block that imports foreign code. It gives what the block registers: a list of
    names for each of ``_REGISTRIES``, which are stacks and workloads, in this order.

    ``package``: the installed package that the code is of, if any. What the block prints goes to
    standard error, because standard output may be JSON.
    """
    with contextlib.ExitStack() as stack:
        # Redirected to itself: so the block's end puts it back, should the code replace it.
        stack.enter_context(contextlib.redirect_stderr(sys.stderr))
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        # ``adding`` notes what is registered from now on, and forgets it all if the block raises.
        yield [stack.enter_context(registry.adding(package)) for registry in _REGISTRIES]


def load_entry_point(entry: EntryPoint) -> Why:
    """Import the module that an entry point names, which registers its stacks. Returns why it
    cannot be used; '' if it can.

    ``os._exit`` and a crash in native code end this process: only the trial in a child process
    finds them.
    """
    _registry.load()  # first, so that the suite's own stacks keep their names
    imported_before = entry.module in sys.modules
    try:
        with _importing(entry_points.package_of(entry)) as added:
            entry.load()
            # The first of ``_REGISTRIES`` is that of stacks.
            added_stacks = added[0]
            # A module that was imported before has registered its stacks then.
            if not any(added) and not imported_before:
                return because("registers-nothing")
            # The parent process of a run asks each stack for its environments. A stack that answers
            # wrongly is refused here.
            for name in added_stacks:
                environments_of(_registry.items()[name])  # raises for a wrong answer
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # another package may raise anything
        return one_line(error)
    return ""


def load_plugin(path: Path, *, trial: bool = False) -> dict[str, Reason]:
    """Import a file that registers stacks or workloads, unless it was imported before.

    ``trial``: import it in a child process first, because a file that calls ``os._exit`` or hangs
    would end or stop this process. Returns, by name, what to say of each stack or workload of an
    installed package that the file replaces. Raises ``BadPlugin`` with the reason in one line.
    """
    registry()
    if not is_utf8(str(path)):
        raise BadPlugin(about(str(path), because("path-not-utf8")))
    # The path without links: one file under two names is one plugin.
    if os.path.realpath(path) in _plugins:
        return {}
    if trial and os.path.isfile(path):
        # In a child process; '' if it can be imported.
        reason = entry_points.import_failure(str(path))
        if reason:
            raise BadPlugin(about(str(path), reason))

    # As they are before the import, which removes an item that the file replaces.
    packages_before = [dict(registry.packages) for registry in _REGISTRIES]  # by stack or workload
    added = _import_plugin(path)
    _plugins.add(os.path.realpath(path))

    replaced: dict[str, Reason] = {}
    # A name of an installed package that the file has registered too: the file's item is used now.
    for known, packages, names in zip(_REGISTRIES, packages_before, added, strict=True):
        for name in names:
            if name in packages:
                replaced[name] = because(
                    "plugin-replaces",
                    path=path,
                    kind=known.kind,
                    name=name,
                    package=packages[name],
                )
    return replaced


def _import_plugin(path: Path) -> list[list[str]]:
    """Import a plugin file. Returns the names that it registers, a list for each of
    ``_REGISTRIES``. Raises ``BadPlugin`` if it is no Python file, raises, or registers nothing.
    """
    # None for a name without the suffix of a Python file. The prefix keeps the module's name apart
    # from those of other modules.
    spec = importlib.util.spec_from_file_location(f"overhead_plugin_{path.stem}", path)
    if spec is None or spec.loader is None or not os.path.isfile(path):
        why = because("not-a-python-file") if path.exists() else because("no-such-file")
        raise BadPlugin(about(str(path), why))
    module = importlib.util.module_from_spec(spec)
    try:
        with _importing() as added:
            spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise BadPlugin(about(str(path), one_line(error))) from error
    # ``added``: by registry, the names; all empty if nothing was registered.
    if not any(added):
        raise BadPlugin(about(str(path), because("registers-nothing")))
    return added


def environments_of(probe: Probe) -> list[dict[str, str]]:
    """The answer of ``Probe.environments``: sets of environment variables, for each of which a
    worker process is started. Raises ``BadValue`` for another type, or if no process can have
    them.
    """
    # For messages: the class and the method, such as ``TorchProbe.environments()``.
    where = _where(probe, "environments")
    environments: list[dict[str, str]] = checked(where, probe.environments(), list[dict[str, str]])
    for environment in environments:
        for name, value in environment.items():
            if not _is_variable(name, value):
                raise BadValue(
                    f"{where} has {name!r}: {value!r}; no process can have such a variable"
                )
    return environments


def _is_variable(name: str, value: str) -> bool:
    """Whether a process can have an environment variable with this name and value."""
    if not name or "=" in name:
        return False
    text = name + value
    return "\0" not in text and is_utf8(text)


def targets_of(probe: Probe) -> list[Target]:
    """The answer of ``Probe.targets``: the devices of a stack. Each gets the stack's ``same_calls``
    too (whether its callers, Python and compiled code, make the same calls), for readers who have
    the target alone. Raises ``BadValue`` for another type or a target of another stack.

    An error of the library becomes ``Unavailable``, because nothing has run on this machine yet.
    """
    where = _where(probe, "targets")
    try:
        answer = probe.targets()
    except Exception as error:
        # None if the error is a mistake in code, or says itself what is wrong.
        unavailable = cannot_here(error, probe, because("cannot-search-devices"))
        if unavailable is None:  # the machine is not the cause
            raise
        raise unavailable from error
    targets = []
    for target in _instance(where, answer, list | tuple):
        _instance(where, target, Target)
        if target.stack != probe.name:
            raise BadValue(f"{where} has the stack {target.stack!r}; it must be {probe.name!r}")
        targets.append(msgspec.structs.replace(target, same_calls=probe.same_calls))
    return targets


def space_of(probe: Probe, target: Target) -> Space:
    """The answer of ``Probe.space``, the cases that can be measured on a target, with those that
    other features of the suite add to the stack. Raises ``BadValue`` for another type.
    """
    where = _where(probe, "space")
    space = with_arms(_instance(where, probe.space(target), Space), target)
    # ``star``: the cases of a usual run.
    for case in space.star():
        _instance(where, case, Case)
    return space


def _where(probe: Probe, method: str) -> str:
    return f"{type(probe).__name__}.{method}()"


def _instance(where: str, value: Any, kind: Any) -> Any:
    """The value, if it is of this class. Raises ``BadValue`` that names the method ``where``."""
    if not isinstance(value, kind):
        wanted = getattr(kind, "__name__", "list")
        raise BadValue(f"{where} gave {type(value).__name__}; it must be {wanted}")
    return value
