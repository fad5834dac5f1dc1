"""The statements to measure, as the parent hands them to its workers: a file that an environment variable names."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from overhead import scratch
from overhead.errors import Unavailable

VARIABLE = "OVERHEAD_CALLS"


class FoundCall(Struct, frozen=True, kw_only=True, tag="found"):
    """What a trial found out about one statement.

    ``one_ns``: a rough time of one call with its wait. ``waits``: the names of the waits; empty if ``--wait`` gave a
    statement. ``prints``: it writes to standard output.
    """

    one_ns: float
    waits: list[str]
    said: str
    api: str
    adapter: str
    packages: list[str] = []
    prints: bool = False


class CallSpec(Struct, frozen=True, kw_only=True):
    """The statements to measure. ``wait``: a name of ``KNOWN_WAITS``, a statement that waits, or empty to find out.

    ``path``: entries of ``sys.path`` that the workers need. ``found``: by statement, what the trial found out.
    """

    calls: list[str]
    setup: str = ""
    wait: str = ""
    path: list[str] = []
    found: list[FoundCall] = []

    def add_path(self) -> None:
        """Let imports find what the caller's imports find."""
        sys.path += [entry for entry in self.path if entry not in sys.path]


def read_spec() -> CallSpec:
    """The statements to measure. Raises ``Unavailable`` if none were given."""
    file = os.environ.get(VARIABLE)
    if not file:
        raise Unavailable("no statement was given", 'overhead time "CALL"')
    return msgspec.json.decode(Path(file).read_bytes(), type=CallSpec)


@contextlib.contextmanager
def handed_over(spec: CallSpec) -> Iterator[None]:
    """The context in which this process and its workers read this ``spec``."""
    with scratch.subfolder() as folder:
        file = Path(folder) / "calls.json"
        file.write_bytes(msgspec.json.encode(spec))
        os.environ[VARIABLE] = str(file)
        try:
            yield
        finally:
            del os.environ[VARIABLE]
