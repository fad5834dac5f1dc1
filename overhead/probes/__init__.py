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


def register(cls: type[Probe]) -> type[Probe]:
    """Class decorator: register one instance by the ``name`` of the class, and return the class.

    Raises ``BadValue`` for a bad attribute, and ``UsageError`` if another stack has the name.
    """
    cls.check_attributes()
    _registry.add(cls.name, cls(), owner_of(cls))
    return cls


def registry() -> dict[str, Probe]:
    """All stacks by name, sorted. The first call imports the built-in ones, then those of installed
    packages.
    """
    if _registry.load():
        entries = sorted(
            importlib.metadata.entry_points(group=entry_points.GROUP), key=entry_points.text_of
        )
        if _allowed is not None:
            entries = [entry for entry in entries if entry_points.text_of(entry) in _allowed]
        reasons: list[Why] = [""] * len(entries)
        if _allowed is None:
            reasons = entry_points.import_failures(entries)
        for entry, reason in zip(entries, reasons, strict=True):
            if reason := reason or load_entry_point(entry):
                _unavailable.append(entry_points.missing_record(entry, reason))
            else:
                _usable.append(entry_points.text_of(entry))
    return _registry.items()


def facts_of_stack(name: str) -> StackFacts:
    """The facts of a registered stack: the suite's of its own stacks, else those of the probe."""
    own = own_stacks().get(name)
    if own is not None:
        return own
    probe = registry()[name]
    return msgspec.structs.replace(probe.facts, label=probe.facts.label or probe.title)


def stacks_with(role: str) -> list[str]:
    """The registered stacks with this ``StackRole``: the suite's own in their order, then the
    others by name.
    """
    known = registry()
    ours = [name for name in own_stacks() if name in known]
    others = [name for name in known if name not in own_stacks()]
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
    """Collect what the block adds to each registry. What it prints goes to standard error, as
    output may be JSON.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stderr(sys.stderr))
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        yield [stack.enter_context(one.adding(package)) for one in _REGISTRIES]


def load_entry_point(entry: EntryPoint) -> Why:
    """Import the module of an entry point. Returns why it cannot be used; '' if it can.

    ``os._exit`` and a crash in native code end this process: only the trial in a child process
    finds them.
    """
    _registry.load()
    imported_before = entry.module in sys.modules
    try:
        with _importing(entry_points.package_of(entry)) as added:
            entry.load()
            if not any(added) and not imported_before:
                return because("registers-nothing")
            for name in added[0]:
                environments_of(_registry.items()[name])
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
    if os.path.realpath(path) in _plugins:
        return {}
    if trial and os.path.isfile(path) and (reason := entry_points.import_failure(str(path))):
        raise BadPlugin(about(str(path), reason))
    spec = importlib.util.spec_from_file_location(f"overhead_plugin_{path.stem}", path)
    if spec is None or spec.loader is None or not os.path.isfile(path):
        why = because("not-a-python-file") if path.exists() else because("no-such-file")
        raise BadPlugin(about(str(path), why))
    module = importlib.util.module_from_spec(spec)
    packages = [dict(one.packages) for one in _REGISTRIES]
    try:
        with _importing() as added:
            spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise BadPlugin(about(str(path), one_line(error))) from error
    if not any(added):
        raise BadPlugin(about(str(path), because("registers-nothing")))
    _plugins.add(os.path.realpath(path))
    return {
        name: because("plugin-replaces", path=path, kind=one.kind, name=name, package=before[name])
        for one, before, names in zip(_REGISTRIES, packages, added, strict=True)
        for name in names
        if name in before
    }


def environments_of(probe: Probe) -> list[dict[str, str]]:
    """The answer of ``Probe.environments``: variables by name. Raises ``BadValue`` if no process
    can have them.
    """
    where = _where(probe, "environments")
    found: list[dict[str, str]] = checked(where, probe.environments(), list[dict[str, str]])
    for name, value in (item for environment in found for item in environment.items()):
        if not name or "=" in name or "\0" in name + value or not is_utf8(name + value):
            raise BadValue(f"{where} has {name!r}: {value!r}; no process can have such a variable")
    return found


def targets_of(probe: Probe) -> list[Target]:
    """The answer of ``Probe.targets``, with ``same_calls``. Raises ``BadValue`` for another type or
    another stack.

    An error of the library becomes ``Unavailable``, because nothing has run on this machine yet.
    """
    where = _where(probe, "targets")
    try:
        answer = probe.targets()
    except Exception as error:
        unavailable = cannot_here(error, probe, because("cannot-search-devices"))
        if unavailable is None:
            raise
        raise unavailable from error
    found = [_instance(where, target, Target) for target in _instance(where, answer, list | tuple)]
    for target in found:
        if target.stack != probe.name:
            raise BadValue(f"{where} has the stack {target.stack!r}; it must be {probe.name!r}")
    return [msgspec.structs.replace(target, same_calls=probe.same_calls) for target in found]


def space_of(probe: Probe, target: Target) -> Space:
    """The answer of ``Probe.space``, with the cases that slices add. Raises ``BadValue`` if it has
    another type.
    """
    where = _where(probe, "space")
    space = with_arms(_instance(where, probe.space(target), Space), target)
    for case in space.star():
        _instance(where, case, Case)
    return space


def _where(probe: Probe, method: str) -> str:
    return f"{type(probe).__name__}.{method}()"


def _instance(where: str, value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        raise BadValue(
            f"{where} gave {type(value).__name__}; it must be {getattr(kind, '__name__', 'list')}"
        )
    return value
