"""Stacks, workloads and page sections register themselves by name when their module is imported."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Generic, TypeVar

from overhead.errors import UsageError
from overhead.slices import of_features

T = TypeVar("T")
NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")


class Registry(Generic[T]):
    """Items of one kind by name. Each module of ``package`` registers an item when it is imported.

    A folder in ``package`` names in ``REGISTERS`` those of its modules that do so. Modules named in
    ``skip``, and those whose names begin with an underscore, are not imported. ``in_features``: the
    name of the module in which a feature registers items of this kind. ``packages``: by item, the
    installed package that it came from.
    """

    def __init__(
        self, kind: str, package: str, skip: frozenset[str] = frozenset(), in_features: str = ""
    ) -> None:
        """An empty registry. ``kind``: what its items are called in errors. The other arguments:
        see the class; ``load`` imports the modules.
        """
        self.kind = kind
        self.package = package
        self.skip = skip
        self.in_features = in_features
        self.packages: dict[str, str] = {}
        self._items: dict[str, tuple[T, str]] = {}  # with the owner of each
        # The names that were added since the last ``adding`` began, and the package that it is for.
        self._added: list[str] = []
        self._adding = ""
        self._loaded = False

    def add(self, name: str, item: T, owner: str) -> None:
        """Register an item. ``owner``: a text that identifies the class that defines it, the same
        after a second import of its file.

        So a second import replaces the item, and any file replaces an item of an installed package.
        Raises ``UsageError`` for an invalid name and for a name of another owner.
        """
        if not NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} is not a valid {self.kind} name: it must match {NAME.pattern}"
            )
        # A file replaces an item of a package, but a package no item of another one. ``_adding``:
        # the package whose items are being added; '' for a file.
        is_replaceable = name in self.packages and not self._adding
        # The name is in use and may not be taken over. The same owner may add it again, as a second
        # import of its file does.
        if name in self._items and not is_replaceable:
            _, owner_before = self._items[name]
            if owner_before != owner:
                raise UsageError(f"the {self.kind} name {name!r} is taken")
        self._items[name] = item, owner
        # The item that is there now is of a file, or of the package whose items are being added;
        # ``adding`` notes the latter again at its end.
        self.packages.pop(name, None)
        self._added.append(name)

    @contextlib.contextmanager
    def adding(self, package: str = "") -> Iterator[list[str]]:
        """A ``with`` block that imports modules. It gives a list, to which the name of each item
        that they register is added. ``package``: the installed package that the items are of;
        '' for none.

        If the block raises, all its items are forgotten.
        """
        # What there is now, to be put back if the block raises.
        before, packages = dict(self._items), dict(self.packages)
        # ``add`` appends the names to this list, which the caller gets.
        added: list[str] = []
        self._added, self._adding = added, package
        try:
            yield added
        except BaseException:
            self._items, self.packages = before, packages
            raise
        finally:
            self._adding = ""
        # Where the items came from: ``add`` took them for items of a file.
        if package:
            self.packages.update(dict.fromkeys(added, package))

    def remove(self, name: str) -> None:
        """Forget an item, if there is one of that name."""
        self._items.pop(name, None)

    def load(self) -> bool:
        """Import the modules that register items. True if this call was the first; later ones do
        nothing.
        """
        if self._loaded:
            return False
        # Set before the imports: one of the modules may ask for the items.
        self._loaded = True
        # A module registers its items by being imported.
        folder = importlib.import_module(self.package).__path__
        for found in pkgutil.iter_modules(folder):
            if found.name in self.skip or found.name.startswith("_"):
                continue
            module = importlib.import_module(f"{self.package}.{found.name}")
            if found.ispkg:  # a folder, which names its modules that register items
                for name in module.REGISTERS:
                    importlib.import_module(f"{module.__name__}.{name}")
        # ``of_features`` imports the modules of this name of all features, which register their
        # items.
        if self.in_features:
            of_features(self.in_features)
        return True

    def items(self) -> dict[str, T]:
        """All items by name, sorted by name."""
        self.load()
        return {name: item for name, (item, _) in sorted(self._items.items())}


def owner_of(cls: type) -> str:
    """What identifies the definition of a class, also after a second import of its file under
    another module name.
    """
    if cls.__module__.startswith("overhead."):
        return f"{cls.__module__}.{cls.__qualname__}"
    return cls.__qualname__
