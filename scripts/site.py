"""Write the static site: ``python scripts/site.py [OUT]``. The documents, the pages of the runs in
reports/data and reports/contributed, and the page that measures a browser.

It needs the extras ``report`` and ``site``. The documents stand where the repository has them, so
their links hold in both. ``site.css`` is their look.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from overhead.probes.browser.page_files import single_file_page
from overhead.report import build

ROOT = Path(__file__).resolve().parent.parent
RUNS = ("reports/data", "reports/contributed")
COPIED = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "docs", *RUNS)
REPORT = "report"
"""The folder of the site with the pages of the runs."""
MEASURE = "measure.html"
"""The page that measures the reader's browser, as one file. Links to it are outside this
repository: keep the path.
"""


def navigation(index: str) -> list[dict[str, Any]]:
    """The menu: the home page, the pages of the runs, and the sections of docs/index.md with their
    links.
    """
    menu: list[dict[str, Any]] = [{"Home": "README.md"}, {"Measurements": f"{REPORT}/index.html"}]
    menu.append({"Measure this browser": MEASURE})
    for section in re.split(r"\n\n(?=\w)", index)[1:]:
        title, *lines = section.splitlines()
        links = []
        for line in lines:
            link = re.match(r"- \[(?P<name>.+?)\]\((?P<target>.+?)\)", line)
            if link is not None:
                links.append({link["name"]: _in_site(link["target"])})
        menu.append({title: links})
    return [*menu, {"Changes": "CHANGELOG.md"}]


def home_page(readme: str) -> str:
    """The README as the first page: at full width, and each of its pictures leads to the pages of
    the runs.
    """
    linked = re.sub(r"(?m)^!\[.+?\]\(.+?\)$", rf"[\g<0>]({REPORT}/index.html)", readme)
    return f"---\nhide: [navigation, toc]\n---\n{linked}"


def _in_site(link: str) -> str:
    """The target of a link in docs/index.md, from the root of the site."""
    if link.startswith("../"):
        return link.removeprefix("../")
    return f"docs/{link}"


def configuration(source: Path, out: Path) -> dict[str, Any]:
    """The configuration of MkDocs. The site needs no network and can be read from a folder."""
    return {
        "site_name": "overhead",
        "docs_dir": str(source),
        "site_dir": str(out),
        "use_directory_urls": False,
        "theme": {
            "name": "material",
            "font": False,
            "palette": {"scheme": "overhead"},
            "logo": "site.svg",
            "favicon": "site.svg",
            "features": ["navigation.tabs", "navigation.footer"],
        },
        "extra_css": ["site.css"],
        "plugins": ["search"],
        "markdown_extensions": [
            "tables",
            "toc",
            "pymdownx.superfences",
            {"pymdownx.highlight": {"pygments_lang_class": True, "default_lang": "shell"}},
        ],
        "validation": {"links": {"anchors": "warn", "unrecognized_links": "warn"}},
        "nav": navigation((ROOT / "docs" / "index.md").read_text("utf-8")),
    }


def write(out: Path) -> Path:
    """Write the site to an empty or new folder; returns its first page. A broken link is an
    error.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source")
        for name in COPIED:
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, target)
            else:
                shutil.copyfile(ROOT / name, target)
        for name in ("site.css", "site.svg"):
            shutil.copyfile(ROOT / "scripts" / name, source / name)
        home = source / "README.md"
        home.write_text(home_page(home.read_text("utf-8")), "utf-8")
        build([ROOT / name for name in RUNS], source / REPORT, documents="../index.html")
        (source / MEASURE).write_text(single_file_page(), encoding="utf-8")
        # MkDocs reads YAML, and JSON is YAML.
        config = Path(folder, "mkdocs.yml")
        config.write_text(json.dumps(configuration(source, out.resolve())), encoding="utf-8")
        # With --quiet MkDocs would count no warnings.
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config)]
        subprocess.run(command, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    return out / "index.html"


if __name__ == "__main__":
    out = sys.argv[1] if len(sys.argv) > 1 else "build/site"
    print(write(Path(out)))
