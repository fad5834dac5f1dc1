"""Whose code a file holds: the program of the user, this package, or an installed package."""

from __future__ import annotations

import operator
import os
import re
import sysconfig
import types
from pathlib import Path

SUITE = str(Path(__file__).parents[1]) + os.sep
_FOLDERS = operator.itemgetter("stdlib", "platstdlib", "purelib", "platlib")(sysconfig.get_paths())
_NOT_OWN = (SUITE, *_FOLDERS, "<frozen", "<overhead")
"""The beginnings of file names of code that does not belong to the program."""
EXAMPLE = SUITE + os.path.join("explaining", "example.py")
"""The example stands for a program of a user."""
_PACKAGES = re.compile(r"[\\/](site|dist)-packages[\\/]")
"""A folder of installed packages, which may be another one than this environment's: the user's,
Debian's, one that a ``.pth`` file or PYTHONPATH names.
"""


def is_own_code(code: types.CodeType) -> bool:
    """Whether code belongs to the program, and not to the standard library, an installed package or
    this one. Errors and explanations name lines of the program only.
    """
    file = code.co_filename
    # The example of ``overhead explain`` stands for a program of a user, though it lies here.
    if file == EXAMPLE:
        return True
    return not file.startswith(_NOT_OWN) and not is_in_packages(file)


def is_in_packages(file: str) -> bool:
    """Whether a file or folder lies in a folder where pip or a Linux distribution installs
    packages.
    """
    return _PACKAGES.search(file) is not None
