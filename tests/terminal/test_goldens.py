"""What the commands print and write as Markdown, compared with recorded texts in ``tests/data/terminal``.

After an intended change of wording: ``python -m tests.terminal.test_goldens``.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from rich.console import Console

from overhead.blocks.markdown import markdown
from overhead.blocks.parts import Part
from overhead.blocks.terminal import show
from overhead.claims.judging import Judged, judge_runs
from overhead.claims.rules import VERDICTS
from overhead.claims.show import overview_blocks, verdict_blocks
from overhead.comparing import Verdicts, compare
from overhead.comparing.show import comparison_blocks
from overhead.explain.show import explanation_blocks, timing_blocks
from overhead.report.brief import brief_blocks
from overhead.results import Target
from tests.fakes.explanations import decode_explained
from tests.fakes.report import crowded
from tests.fakes.runs import COSTS, Made
from tests.fakes.timings import two_calls

GOLDENS = Path(__file__).parents[1] / "data" / "terminal"
WIDTH = 160


def printed(blocks: Iterable[Part], width: int = WIDTH) -> str:
    """What a console without colours prints of the blocks; spaces at line ends removed."""
    out = io.StringIO()
    show(blocks, Console(file=out, width=width, color_system=None))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def judged() -> list[Judged]:
    """The first claim of each verdict, judged from a made-up run, and one that its own figures refute."""
    found = judge_runs([crowded()])
    by_verdict = {one.verdict: one for one in reversed(found)}
    firsts = [by_verdict[verdict] for verdict in VERDICTS if verdict in by_verdict]
    return [*firsts, next(one for one in found if one.claim.test and one.claim.test.kind == "implied")]


def compare_outcomes() -> Verdicts:
    """Two made-up runs in which one case became twice as slow and one is missing; the adapter's name is hostile."""
    hostile = Target(stack="fake", api="Vulkan", adapter="<script>alert(1)</script>|[x](javascript:1)\x1b[31m")
    with TemporaryDirectory() as folder:
        base = Made(seed=1, target=hostile).write(Path(folder) / "a.json")
        costs = {"small": COSTS["small"], "middle": 2 * COSTS["middle"]}
        new = Made(seed=2, target=hostile, costs=costs).write(Path(folder) / "b.json")
        return compare(base, new, 5)


RENDERERS: dict[str, Callable[[], str]] = {
    "show.txt": lambda: printed(brief_blocks(crowded())),
    "compare.txt": lambda: printed(comparison_blocks(compare_outcomes())),
    "compare.md": lambda: markdown(comparison_blocks(compare_outcomes())),
    "claims.txt": lambda: printed(overview_blocks(judged())),
    "explain.txt": lambda: printed(explanation_blocks(decode_explained())),
    "time.txt": lambda: printed(timing_blocks(two_calls())),
    "claims.md": lambda: markdown(verdict_blocks(judged())),
}


@pytest.mark.parametrize("name", RENDERERS)
def test_each_renderer_writes_the_recorded_text(name: str) -> None:
    assert RENDERERS[name]() == (GOLDENS / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", RENDERERS)
def test_no_renderer_writes_control_characters_or_markup_of_a_file(name: str) -> None:
    text = RENDERERS[name]()
    assert "\x1b" not in text
    assert not name.endswith(".md") or "<script" not in text.replace("\\<", "")


if __name__ == "__main__":
    for name, render in RENDERERS.items():
        (GOLDENS / name).write_text(render(), encoding="utf-8")
