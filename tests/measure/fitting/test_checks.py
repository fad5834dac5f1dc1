"""The checks that give a figure its status, as a list."""

from __future__ import annotations

import re
from pathlib import Path

from overhead.measure.fitting.checks import CHECKS

METHOD = Path(__file__).parents[3] / "docs" / "method.md"


def statuses_of_the_table() -> list[str]:
    """The statuses of the table of docs/method.md that says when each is given, in its order."""
    text = METHOD.read_text(encoding="utf-8")
    table = text.split("| status | when |")[1].split("\n\n")[0]
    return re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)


def test_the_checks_stand_in_the_order_of_the_table_of_the_method() -> None:
    statuses = [check.status for check in CHECKS]
    in_order = list(dict.fromkeys(statuses))
    assert [*in_order, "ok"] == statuses_of_the_table()
    assert statuses == sorted(statuses, key=in_order.index)
