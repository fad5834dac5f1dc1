"""A stack in one file: SQLite as a "device". A unit of work is one statement.

overhead run --plugin docs/examples/my_stack.py -p sqlite --profile quick
"""

from itertools import repeat

import numpy as np

from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, StackFacts, StackRow, Unavailable
from overhead.probes.kernels import lcg
from overhead.results import Case, Scalar, Target

STEP = f"UPDATE step SET x = (x * {lcg.MULTIPLIER} + {lcg.INCREMENT}) & {lcg.PERIOD - 1}"


@register
class SqliteProbe(Probe):
    """The name that ``overhead list`` shows, the devices, and their cases."""

    name = "sqlite"
    title = "SQLite in memory"
    mend = "a Python with its sqlite3 module"
    facts = StackFacts(label="SQLite", colour="#0f5a82", rows=[StackRow(label="SQLite UPDATE")])

    def targets(self) -> list[Target]:
        # Import libraries here, in a worker: the parent process only imports this file.
        try:
            import sqlite3
        except ImportError as error:
            raise Unavailable(f"sqlite3 does not import: {error}", self.mend) from error
        return [
            Target(
                stack=self.name,
                api="CPU",
                adapter="CPU",
                versions={"sqlite": sqlite3.sqlite_version},
            )
        ]

    def space(self, target: Target) -> Space:
        base = Case(pattern="per-submit", unit="step", params={"values": 1})
        return Space(base, axes={"values": [8]})

    def open(self, target: Target, case: Case) -> Chain:
        return Statements(values=int(case.params["values"]))


class Statements(Chain):
    """n statements, each on the result of the previous one. A call returns when its statement has
    run.
    """

    overlap = "serial"
    synchronous = True

    def __init__(self, values: int) -> None:
        import sqlite3

        self._seeds = lcg.seeds(values)
        self._base = sqlite3.connect(":memory:", isolation_level=None)
        self._base.execute("CREATE TABLE step (x INTEGER)")
        self._base.executemany(
            "INSERT INTO step VALUES (?)", [(int(seed),) for seed in self._seeds]
        )
        self._execute = self._base.execute  # bound once, so that only the operation is timed

    def issue(self, n: int) -> None:
        execute = self._execute
        for _ in repeat(None, n):
            execute(STEP)

    def wait(self) -> None:
        return

    def executed(self) -> int:
        # The values show how many steps ran, and that they ran in order.
        values = [row[0] for row in self._base.execute("SELECT x FROM step ORDER BY rowid")]
        return lcg.distance(self._seeds, np.array(values))

    def window(self) -> dict[str, Scalar]:
        return {"operation": "UPDATE, autocommit", "journal": "memory"}

    def close(self) -> None:
        self._base.close()
