"""Every number of the front page and of README.md is the one that the files of the runs give."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts import write_docs

pytestmark = pytest.mark.needs("matplotlib", "seaborn", "jinja2")
ROOT = Path(__file__).parents[2]
RUNS = ROOT / "reports" / "data"
PACKAGE = ROOT / "overhead"
RULES = [
    PACKAGE / "reading" / "next_run.json",
    PACKAGE / "reading" / "published.toml",
    PACKAGE / "claims" / "claims.toml",
    PACKAGE / "traces" / "published.json",
]


def recomputed(page: Path, facts: Path) -> str:
    """What the checker says, which runs without the package."""
    checker = Path(__file__).with_name("page_numbers.py")
    runs = [*RUNS.glob("*.json"), *(RUNS / "again").glob("*.json")]
    # -S: the package is not on the path of the checker.
    command: list[str | Path] = [sys.executable, "-ES", checker, *runs, *RULES, page, facts]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert not done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a report on the committed runs."""
    out = tmp_path_factory.mktemp("recomputed")
    subprocess.run(
        [sys.executable, "-m", "overhead", "report", RUNS, "--out", out], cwd=ROOT, check=True
    )
    return out


def facts_of(report: Path) -> Path:
    return report / "downloads" / "front.facts.json"


def test_every_number_is_the_one_that_the_files_give(report: Path) -> None:
    assert recomputed(report / "index.html", facts_of(report)) == "every number is right\n"


@pytest.mark.parametrize("name", ["contention", "machines", "decode"])
def test_every_number_of_the_answers_of_a_page_is_the_one_that_the_files_give(
    report: Path, name: str
) -> None:
    page = report / "pages" / f"{name}.html"
    checked = recomputed(page, report / "downloads" / f"{name}.facts.json")
    # What a section opens with.
    answers = re.findall(
        r'<(p|ul) class="(?:answer|lead)">(.*?)</\1>', page.read_text("utf-8"), re.DOTALL
    )
    sections = "\n".join(texts for _, texts in answers)
    assert re.search(r"\d", sections)
    plain_texts = re.sub(r"<[^>]*>", "", html.unescape(re.sub(r"</?(?:li|p)>", "\n", sections)))
    texts = {" ".join(text.split()) for text in plain_texts.splitlines()} - {""}
    wrong = [line for line in checked.splitlines() if line.rpartition(" in: ")[2] in texts]
    assert wrong == []


def checked_text(document: str) -> str:
    """The text of a document: all of README.md, of others the generated blocks, each line with its
    number.
    """
    text = (ROOT / document).read_text("utf-8")
    if document == "README.md":
        return text
    inside = False
    lines = []
    for line in text.splitlines():
        if line.startswith("<!--"):
            inside = "end" not in line
        lines.append(line if inside else "")
    return "\n".join(lines)


@pytest.mark.parametrize("document", write_docs.DOCUMENTS_WITH_FACTS)
def test_every_number_of_the_documents_is_the_one_that_the_files_give(
    document: str, tmp_path: Path
) -> None:
    facts = write_docs.facts_file(document)
    text = checked_text(document)
    copy = tmp_path / "copy.md"
    copy.write_text(text, "utf-8")
    assert recomputed(copy, facts) == "every number is right\n"
    first = json.loads(facts.read_bytes())[0]["text"]
    assert first in text
    copy.write_text(text.replace(first, "987", 1), "utf-8")
    assert "every number is right" not in recomputed(copy, facts)


ALTERED = {
    "the end of an interval in a table": (r"(<td[^>]*>\d\S* \(\d\S* to )", r"\g<1>9"),
    "a ratio": (r"(<td[^>]*>)(\d\S*× \()", r"\g<1>9\2"),
    "a number that nothing tells of": (r"</footer>", "<p>It took 7 s.</p></footer>"),
}


@pytest.mark.parametrize("kind", ALTERED)
def test_an_altered_number_is_found(report: Path, tmp_path: Path, kind: str) -> None:
    text = (report / "index.html").read_text("utf-8")
    wrong = tmp_path / "index.html"
    wrong.write_text(re.sub(*ALTERED[kind], text, count=1), "utf-8")
    assert wrong.read_text("utf-8") != text
    assert "every number is right" not in recomputed(wrong, facts_of(report))


def is_a_figure(fact: dict[str, Any]) -> bool:
    """Whether the number is a figure of a file in another unit."""
    origin = fact["of"]
    return origin.get("operation") == "/" and "figure" in origin["parts"][0]


def differs(value: float, other: float) -> bool:
    """Whether two values are so different that no rounding makes them alike."""
    return not 0.9 < value / other < 1.1


def test_a_fact_about_another_figure_is_found(report: Path, tmp_path: Path) -> None:
    facts = json.loads(facts_of(report).read_bytes())
    of_one_figure = [fact for fact in facts if is_a_figure(fact)]
    first = of_one_figure[0]
    others = [fact for fact in of_one_figure if differs(fact["value"], first["value"])]
    first["of"] = others[0]["of"]
    wrong = tmp_path / "front.facts.json"
    wrong.write_text(json.dumps(facts), "utf-8")
    assert recomputed(report / "index.html", wrong).startswith(first["place"])
