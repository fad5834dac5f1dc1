"""A compiled caller that enters NumPy below the function that Python calls: a case of its own, and
no share.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from overhead.loading.reduce import load
from overhead.reading.dispatch_costs import dispatch_costs
from overhead.reading.host_shares import host_shares
from overhead.reading.view import View
from overhead.results import UFUNC_LOOP
from tests.fakes.report import fingerprint, record, share

OLD_FILE = Path(__file__).parents[2] / "docs" / "examples" / "compare" / "numpy-2.4.json"


@pytest.mark.parametrize(
    ("entry", "shares"),
    [
        pytest.param(UFUNC_LOOP, 0, id="it enters below Python's function"),
        pytest.param("the function that Python calls", 1, id="it enters the same function"),
    ],
)
def test_pythons_share_needs_a_compiled_caller_that_enters_numpy_where_python_does(
    entry: str, shares: int
) -> None:
    top = record("numpy", each=600.0, api="CPU", adapter="CPU")
    below = record("numpy", each=20.0, api="CPU", adapter="CPU", caller="native")
    below = msgspec.structs.replace(below, window={"entry": entry})
    view = View(fingerprint(top, below, comparisons=[share("python-share", top, below, 580.0)]))
    assert len(host_shares(view)) == shares
    (row,) = dispatch_costs(view).rows  # type: ignore[union-attr]
    assert ("compiled" in row.marks) == bool(shares)
    assert (entry in view.target(below).pattern_label(below)) == (not shares)


def test_an_older_file_with_numpy_has_no_share_of_python() -> None:
    assert b"numpy@CPU:CPU step per-submit native" in OLD_FILE.read_bytes()
    assert b"python-share" in OLD_FILE.read_bytes()
    assert not [one for one in host_shares(View(load(OLD_FILE))) if one.target.stack == "numpy"]
