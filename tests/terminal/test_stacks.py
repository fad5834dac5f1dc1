"""The table of ``overhead list``."""

from __future__ import annotations

import io

from rich.console import Console

from overhead.results import MissingStack
from overhead.terminal.stacks import Listed, show_listing


def test_a_missing_stack_names_the_environment_in_which_it_was_looked_for() -> None:
    out = io.StringIO()
    missing = MissingStack(stack="dawn", reason="no adapter", environment={"ICD": "a.json", "SOFTWARE": "1"})
    show_listing([Listed(stack="dawn", title="Dawn", missing=[missing])], Console(file=out, width=120))
    assert "  dawn with ICD=a.json with SOFTWARE=1: no adapter\n" in out.getvalue()
