"""``make release`` finds what must not be uploaded. The builds and installs themselves are slow
tests.
"""

from __future__ import annotations

import email.message
import shutil
import zipfile
from pathlib import Path

import pytest

from scripts import long_description, release
from scripts.release import Failed

ROOT = Path(__file__).resolve().parents[2]
WANTED = {"overhead/__init__.py", "overhead/py.typed", "overhead/blocks/page.html.j2"}
OF_WHEEL = {*WANTED, "overhead-1.0.dist-info/METADATA", "overhead-1.0.dist-info/licenses/LICENSE"}
OF_SDIST = release.OF_SDIST | {f"{folder}file.py" for folder in release.OF_SDIST_FOLDERS}


def metadata(text: str = "", **fields: str) -> email.message.Message:
    message = email.message.Message()
    for name, value in fields.items():
        message[name.replace("_", "-")] = value
    message.set_payload(text)
    return message


def test_a_whole_wheel_passes() -> None:
    assert release.check_wheel_files(OF_WHEEL, WANTED)
    assert release.check_sdist_files(OF_SDIST)
    assert release.check_licence(metadata(License_Expression="MIT"), OF_WHEEL)


@pytest.mark.parametrize("lost", sorted(WANTED))
def test_a_wheel_that_lacks_a_file_is_found(lost: str) -> None:
    with pytest.raises(Failed, match=lost):
        release.check_wheel_files(OF_WHEEL - {lost}, WANTED)


@pytest.mark.parametrize(
    "strange", ["tests/test_a.py", "overhead/__pycache__/a.pyc", "overhead/notes.txt", ".venv/x"]
)
def test_a_wheel_with_a_file_too_many_is_found(strange: str) -> None:
    with pytest.raises(Failed, match=strange):
        release.check_wheel_files({*OF_WHEEL, strange}, WANTED)


@pytest.mark.parametrize("lost", ["README.md", "LICENSE", "tests/file.py"])
def test_an_sdist_that_lacks_a_file_or_folder_is_found(lost: str) -> None:
    with pytest.raises(Failed, match=lost.removesuffix("file.py")):
        release.check_sdist_files(OF_SDIST - {lost})


@pytest.mark.parametrize(
    "strange", ["tests/__pycache__/a.pyc", "reports/local/run.json", ".venv/bin/python", "build/a"]
)
def test_an_sdist_with_files_of_this_machine_is_found(strange: str) -> None:
    with pytest.raises(Failed, match=strange):
        release.check_sdist_files({*OF_SDIST, strange})


def test_a_file_that_names_a_folder_of_this_machine_is_found() -> None:
    files = {"a.json": b'{"path": "/data/somebody/clone/x"}', "b.py": b"pass"}
    assert release.check_no_paths(files, {"/data/other"})
    with pytest.raises(Failed, match=r"a\.json"):
        release.check_no_paths(files, {"/data/somebody/clone"})


@pytest.mark.parametrize(
    ("version", "newest", "tag", "passes"),
    [
        ("0.2.0", "## [0.2.0] - 2026-12-01", "", True),
        ("0.2.0", "## [0.2.0] - 2026-12-01\n\n## [0.1.0]", "v0.2.0", True),
        ("0.1.0", "## [0.2.0] - 2026-12-01\n\n## [0.1.0]", "", False),
        ("0.2.0", "## [Unreleased]\n\n## [0.2.0]", "", False),
        ("0.2.0", "## [0.2.0]", "v0.2.1", False),
        ("0.2.0", "nothing", "", False),
    ],
)
def test_a_wrong_version_is_found(version: str, newest: str, tag: str, passes: bool) -> None:
    changelog = f"# Changes\n\n{newest}\n"
    if passes:
        assert release.check_version(version, changelog, tag) == version
    else:
        with pytest.raises(Failed, match=version):
            release.check_version(version, changelog, tag)


def test_a_wheel_without_its_licence_is_found() -> None:
    with pytest.raises(Failed):
        release.check_licence(metadata(), OF_WHEEL)
    with pytest.raises(Failed):
        release.check_licence(metadata(License_Expression="MIT"), WANTED)


def test_links_of_the_long_description_name_the_repository() -> None:
    text = "# overhead\n[a](docs/a.md#b) ![p](docs/p.png) [c](https://example.org/c) [d](#d)\n"
    assert long_description.relative_links(text) == ["docs/a.md#b", "docs/p.png"]
    absolute = long_description.with_absolute_links(text, "https://example.org/me/overhead/")
    assert not long_description.relative_links(absolute)
    assert "https://example.org/me/overhead/blob/main/docs/a.md#b" in absolute
    assert "https://example.org/me/overhead/raw/main/docs/p.png" in absolute
    assert "(https://example.org/c)" in absolute
    assert "(#d)" in absolute


def test_a_long_description_whose_links_do_not_hold_is_found() -> None:
    kind = {"Description_Content_Type": "text/markdown"}
    assert release.check_description(metadata("# overhead\n[a](https://example.org/a)", **kind))
    with pytest.raises(Failed, match=r"docs/a\.md"):
        release.check_description(metadata("# overhead\n[a](docs/a.md)", **kind))
    with pytest.raises(Failed):
        release.check_description(metadata("# overhead"))


README = """# A

<!-- release: pip install it -->

    pip install .     # in a copy

Text with `code`.

    $ it --number 3
    output

    more output

- a list

```sh
make all
```
"""


def test_commands_are_found_in_code_blocks_without_their_output() -> None:
    commands = [command for _, command in release.commands_of(README)]
    assert commands == ["pip install it", "pip install .", "it --number 3", "make all"]


def test_a_command_of_readme_that_nobody_runs_is_found() -> None:
    known = {
        "pip install it": "not run",
        "pip install .": release.RUN,
        "it --number 3": release.RUN,
    }
    assert release.check_readme(README, {**known, "make all": "not run"})
    with pytest.raises(Failed, match="make all"):
        release.check_readme(README, known)
    with pytest.raises(Failed, match="gone"):
        release.check_readme(README, {**known, "make all": "not run", "gone": "not run"})


def test_each_command_of_readme_is_run_or_known_not_to_be() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert list(release.commands_of(text))
    assert release.check_readme(text, release.README_COMMANDS)


def test_a_base_install_that_is_too_large_is_found() -> None:
    assert release.check_size({"numpy": 17_000_000, "rich": 300_000})
    with pytest.raises(Failed, match="scipy"):
        release.check_size({"numpy": 17_000_000, "scipy": 35_000_000})


def test_the_wheel_should_have_the_data_that_the_package_reads() -> None:
    wanted = release.wanted_files(ROOT)
    endings = {Path(name).suffix for name in wanted}
    assert {".css", ".cu", ".j2", ".js", ".json", ".toml", ".typed", ".wgsl"} <= endings
    assert not [name for name in wanted if release.NEVER.search(name)]
    assert not [name for name in wanted if name.startswith("tests/")]
    assert any(name.endswith("/nvidia-h100-all.json") for name in wanted)


def test_a_failed_check_says_so_and_the_others_run(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> str:
        raise Failed("this is wrong: do that")

    checks = release.Checks()
    assert not checks.check("first", fails)
    assert checks.check("second", lambda: "fine")
    assert checks.failed == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first == "failed  first: this is wrong: do that"
    assert second == "ok      second: fine"


@pytest.mark.slow
@pytest.mark.needs("hatchling")
def test_what_this_repository_builds_has_the_right_files(tmp_path: Path) -> None:
    root = tmp_path / "copy"
    names = ("overhead", "scripts", "docs", "tests/scripts", "reports/data")
    for name in names:
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in (
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "Makefile",
    ):
        shutil.copy(ROOT / name, root / name)
    built = release.build(root, tmp_path / "dist")
    wheel = release.files_of_wheel(built.wheel)
    assert release.check_wheel_files(wheel, release.wanted_files(root))
    assert release.check_sdist_files(release.files_of_sdist(built.sdist))
    assert release.check_licence(release.metadata_of(wheel), wheel)
    with zipfile.ZipFile(built.wheel, "a") as archive:
        archive.writestr("tests/test_a.py", "")
    with pytest.raises(Failed, match="tests/test_a"):
        release.check_wheel_files(release.files_of_wheel(built.wheel), release.wanted_files(ROOT))
    (root / "overhead" / "py.typed").unlink()
    lacking = release.build(root, tmp_path / "dist")
    with pytest.raises(Failed, match=r"py\.typed"):
        release.check_wheel_files(release.files_of_wheel(lacking.wheel), release.wanted_files(ROOT))
