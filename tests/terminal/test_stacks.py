"""The table of ``overhead list``."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from overhead.results import MissingStack
from overhead.runner.listing import Listed, listing_blocks
from tests.terminal.test_goldens import printed


def test_a_missing_stack_names_the_environment_in_which_it_was_looked_for() -> None:
    missing = MissingStack(stack="dawn", reason="no adapter", environment={"ICD": "a.json", "SOFTWARE": "1"})
    text = printed(listing_blocks([Listed(stack="dawn", title="Dawn", missing=[missing])]))
    assert "dawn with ICD=a.json with SOFTWARE=1: no adapter\n" in text


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_list_says_on_a_terminal_which_stack_it_waits_for() -> None:
    import pty

    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    command = [sys.executable, "-m", "overhead", "list", "-p", "numpy"]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=theirs, env={**os.environ, "TERM": "xterm"}, check=True)
    assert b"numpy" in os.read(ours, 1 << 16)
    for one in (ours, theirs):
        os.close(one)
