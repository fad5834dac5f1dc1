"""Every number of the front page and of README.md is the one that the files of the runs give."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.needs("matplotlib", "seaborn", "jinja2")
ROOT = Path(__file__).parents[2]
RUNS = ROOT / "reports" / "data"
RULES = [ROOT / "overhead" / "reading" / "next_run.json", ROOT / "overhead" / "claims" / "claims.toml"]


def recomputed(*documents: Path) -> str:
    paths = [
        Path(__file__).with_name("figures.py"),
        *documents,
        *RUNS.glob("*.json"),
        *(RUNS / "again").glob("*.json"),
        *RULES,
    ]
    return subprocess.run([sys.executable, "-ES", *paths], capture_output=True, text=True, encoding="utf-8").stdout


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("recomputed")
    subprocess.run([sys.executable, "-m", "overhead", "report", RUNS, "--out", out], cwd=ROOT, check=True)
    return out / "index.html"


def test_every_number_is_the_one_that_the_files_give(page: Path) -> None:
    assert recomputed(page, ROOT / "README.md") == "every number is right\n"


ALTERED = {
    "a cost in a sentence": (r"(goes through [^<:]*: )", r"\g<1>9"),
    "the end of an interval in a table": (r"(<td[^>]*>\d\S* \(\d\S* to )", r"\g<1>9"),
    "a ratio": (r"(<td[^>]*>)(\d\S*× \()", r"\g<1>9\2"),
    "another run": (r"(From other runs: [^<]* of \d+-\d+-)\d+", r"\g<1>01"),
    "a number without a rule": (r"</footer>", "<p>It took 7 s.</p></footer>"),
}


@pytest.mark.parametrize("kind", ALTERED)
def test_an_altered_number_is_found(page: Path, tmp_path: Path, kind: str) -> None:
    text = page.read_text("utf-8")
    wrong = tmp_path / "index.html"
    wrong.write_text(re.sub(*ALTERED[kind], text, count=1), "utf-8")
    assert wrong.read_text("utf-8") != text
    assert "every number is right" not in recomputed(wrong)
