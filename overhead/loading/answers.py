"""What a file holds that a command has written: a run, or the saved answer of a command of a
slice.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from overhead.loading import reduce
from overhead.loading.files import OtherAnswer
from overhead.results import Fingerprint
from overhead.slices import of_features


def load(path: str | Path) -> Fingerprint | Any:
    """Read what a command has written: a run, or the answer of ``time --json`` or ``explain
    --out``. This is ``overhead.load`` of the Python API.

    path: a file, or a folder of runs, of which the newest is read. The samples of a run that was
        interrupted make a run too.

    A run is a ``Fingerprint`` with all figures. It prints as the tables of ``overhead show``. An
    answer of ``time`` or ``explain`` is what the function of that name returns.

    Raises ``BadFile``, one line that names the file.
    """
    try:
        return reduce.load(path)
    except OtherAnswer as answered:
        # The file names the format of a command that measures no run.
        return saved_answer(Path(path), answered)


def saved_answer(path: Path, answered: OtherAnswer) -> Any:
    """The answer that a command such as ``time`` or ``explain`` has saved in this file, read by the
    feature of the suite that knows its format.

    ``answered``: the error of reading the file as a run, which has the name of the format. It is
    raised if no feature knows it.
    """
    # The modules ``saved`` of the folders of the package, such as ``overhead/explaining/saved.py``.
    for feature in of_features("saved"):
        answer = feature.saved(path, answered.format)
        if answer is not None:
            return answer
    raise answered
