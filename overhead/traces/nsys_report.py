"""Export a report of Nsight Systems, which only its own program can read."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from overhead.errors import BadFile
from overhead.results import because

_MOST_SECONDS = 300.0
"""Most seconds for an export. Chosen, not measured; that of a report of 1 GB takes minutes."""
_NOT_HERE = ".qdstrm"
"""How the name of a report ends whose export writes a file beside it."""


@contextlib.contextmanager
def exported_report(path: Path) -> Iterator[Path]:
    """The database of a report, in a folder that is removed afterwards: ``nsys`` makes it, where it
    is installed. Nothing is written beside the report. Raises ``BadFile`` with the command that
    exports it.
    """
    program = shutil.which("nsys")
    if program is None or path.suffix == _NOT_HERE:
        raise BadFile(because("report-not-exported", name=path.name), path)
    with tempfile.TemporaryDirectory(prefix="overhead-nsys-") as folder:
        database = Path(folder) / "report.sqlite"
        command = [program, "export", "--type", "sqlite", "--output", str(database)]
        try:
            ended = subprocess.run(
                [*command, str(path.resolve())],
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=_MOST_SECONDS,
                check=False,
                cwd=folder,
            )
            message = (ended.stderr or ended.stdout).decode(errors="replace")
        except (OSError, subprocess.TimeoutExpired) as error:
            message = str(error)
        if not database.is_file():
            last = (message.strip().splitlines() or ["no message"])[-1][:200]
            raise BadFile(
                because("report-export-failed", name=path.name, message=last.strip()), path
            )
        yield database
