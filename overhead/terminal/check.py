"""What ``overhead check`` prints: a line for each case, and under it what is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from overhead.checking.findings import CheckFinding, CheckRow
from overhead.reading.format import plain

_STYLES = {"verified": "green", "opened": "green", "failed": "red", "hung": "red", "crashed": "red", "noted": "yellow"}
_WORDS = {"opened": "opened (the device runs nothing)", "noted": "before the cases"}


class CheckPrinter:
    """Prints the rows of a check while they arrive. Equal findings of several cases are told once."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console()
        self._told: set[tuple[str, str, str]] = set()
        self._left = 0

    def show(self, row: CheckRow) -> None:
        """Print one row."""
        if row.result == "not checked":
            self._left += 1
            return
        result = Text(_WORDS.get(row.result, row.result), _STYLES.get(row.result, "dim"))
        reason = f": {row.reason}" if row.reason else ""
        self._say(result, Text(f"  {plain(row.what, 300)}{plain(reason, 1000)}"))
        for finding in row.findings:
            self._show_finding(finding)

    def _show_finding(self, finding: CheckFinding) -> None:
        key = (finding.level, finding.message, finding.where)
        where = f" ({finding.where})" if finding.where else ""
        again = " (as above)" if key in self._told else ""
        style = "red" if finding.level == "error" else "yellow"
        said = Text(f"    {finding.level} in {plain(finding.step)}: ", style)
        self._say(said, Text(plain(f"{finding.message}{where}{again}", 1000)))
        if not again and len(finding.trace) > 1:
            for line in finding.trace:
                self._say(Text(f"      {plain(line, 300)}", "dim"))
        self._told.add(key)

    def summarise(self, rows: Sequence[CheckRow]) -> None:
        """Print the counts, and how to check the cases that were left out."""
        counts = Counter(row.result for row in rows if row.result not in ("noted", "not checked"))
        warnings = sum(finding.level == "warning" for row in rows for finding in row.findings)
        words = [f"{count} {result}" for result, count in counts.items()] + [f"{warnings} warnings"] * (warnings > 0)
        self._say(Text(f"{', '.join(words) or 'nothing was checked'}.", "bold"))
        if self._left:
            self._say(Text(f"{self._left} more cases were not checked for lack of time; --all checks them too."))

    def _say(self, *parts: Text) -> None:
        self.console.print(Text.assemble(*parts), soft_wrap=True)
