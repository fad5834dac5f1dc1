"""The command that adds an extra names packages, and no text of the project names an index that
lacks this one.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from overhead import extras
from overhead.extras import install_command, packages_of
from overhead.probes import registry

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
FROM_AN_INDEX = re.compile(r"pip install (--?[\w-]+ )*[\"'\\]*overhead\b(?! @)")
FOR_THE_RELEASE = re.compile(r"<!-- release: .* -->")
"""The lines for an index, which the documents show once it holds the package."""
KNOWS_THE_MARKED = {"scripts/release.py"}
"""It checks the marked lines of README.md, so it holds them."""
TEXTS = {"", ".html", ".j2", ".js", ".json", ".md", ".py", ".sh", ".toml", ".txt", ".yml"}


def as_in_metadata(extra: str, requirement: str) -> str:
    """The line of an extra's requirement as a wheel holds it."""
    package, _, marker = requirement.partition(";")
    own = f"extra == '{extra}'"
    return f"Requires-Dist: {package.strip()}; " + (
        f"({marker.strip()}) and {own}" if marker else own
    )


def test_a_wheel_names_the_same_packages_as_the_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        as_in_metadata(extra, requirement)
        for extra, needed in EXTRAS.items()
        for requirement in needed
    ]
    base = [f"Requires-Dist: {requirement}" for requirement in PROJECT["dependencies"]]
    folder = tmp_path / "overhead-1.0.dist-info"
    folder.mkdir()
    head = ["Metadata-Version: 2.4", "Name: overhead", "Version: 1.0"]
    (folder / "METADATA").write_text("\n".join([*head, *base, *lines, ""]), "utf-8")
    in_clone = {extra: packages_of(extra) for extra in EXTRAS}
    monkeypatch.setattr(extras, "__file__", str(tmp_path / "overhead" / "extras.py"))
    assert {extra: packages_of(extra) for extra in EXTRAS} == in_clone
    assert extras.extra_with("matplotlib") == "report"
    assert in_clone["report"] == ["jinja2", "matplotlib", "pandas", "seaborn"]


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("matplotlib", "report"),
        ("jinja2.environment", "report"),
        ("wgpu", "wgpu"),
        ("numba_cuda", "numba-cuda"),
        ("msgspec", ""),
        ("no_such_package", ""),
    ],
)
def test_the_extra_of_a_module_is_the_one_that_installs_its_package(
    module: str, extra: str
) -> None:
    assert extras.extra_with(module) == extra


def test_the_command_names_a_version_only_where_the_newest_may_not_serve() -> None:
    assert install_command("report") == "pip install jinja2 matplotlib pandas seaborn"
    assert '"wgpu==0.32.*"' in install_command("wgpu")
    assert '"cuda-bindings>=12.6,<13"' in install_command("cuda12")
    assert install_command("notebook", "completion") == "pip install cloudpickle shtab"


@pytest.mark.parametrize(("processor", "has_torch"), [("arm64", True), ("x86_64", False)])
def test_packages_that_a_system_lacks_are_left_out(
    monkeypatch: pytest.MonkeyPatch, processor: str, has_torch: bool
) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("platform.machine", lambda: processor)
    assert ("torch" in packages_of("torch")) == has_torch


def test_each_extra_that_a_stack_names_exists() -> None:
    mends = [probe.mend for probe in registry().values() if not isinstance(probe.mend, str)]
    named: list[str] = []
    for mend in mends:
        named += [str(mend.values[name]) for name in ("extras", "older") if name in mend.values]
    assert named
    assert {extra for text in named for extra in text.split(",")} <= set(EXTRAS)


@pytest.mark.parametrize(
    ("text", "is_wrong"),
    [
        ("pip install overhead", True),
        ('python -m pip install "overhead[report]"', True),
        (r"pip install --quiet \"overhead[wgpu]\"", True),
        ('pip install ".[report]"', False),
        ("pip install overhead @ git+https://github.com/OWNER/overhead", False),
        ("pip install jinja2", False),
    ],
)
def test_the_search_for_lines_that_need_an_index_finds_them(text: str, is_wrong: bool) -> None:
    assert bool(FROM_AN_INDEX.search(text)) == is_wrong


def test_no_text_says_to_install_this_package_from_an_index() -> None:
    pages = ["README.md", "CONTRIBUTING.md", "Makefile"]
    listed = ["git", "ls-files", "overhead", "docs", "scripts", "reports", ".github", *pages]
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"git lists no files here: {done.stderr.strip()}")
    wrong = []
    for name in done.stdout.split():
        path = ROOT / name
        if path.suffix not in TEXTS or name in KNOWS_THE_MARKED or not path.is_file():
            continue
        text = FOR_THE_RELEASE.sub("", path.read_text("utf-8"))
        wrong += [f"{name}: {found[0]}" for found in FROM_AN_INDEX.finditer(text)]
    assert not wrong


def test_the_lines_for_the_time_after_the_release_are_marked() -> None:
    text = (ROOT / "docs" / "installing.md").read_text("utf-8")
    assert [FROM_AN_INDEX.search(block) is not None for block in FOR_THE_RELEASE.findall(text)] == [
        True,
        True,
    ]


def test_the_workflow_to_copy_installs_the_package_from_no_index() -> None:
    text = (ROOT / "docs" / "examples" / "pull-request.yml").read_text("utf-8")
    (source,) = re.findall(r"^ *OVERHEAD: (\S+)", text, re.MULTILINE)
    assert source.startswith("git+https://")
