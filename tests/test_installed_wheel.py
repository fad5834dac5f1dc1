"""The wheel that is built from the source distribution works alone: without the repository and
without extras.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from overhead import __version__
from overhead.extras import install_command
from overhead.loading.example_run import example_path

ROOT = Path(__file__).resolve().parents[1]
pytestmark = [pytest.mark.slow, pytest.mark.needs("hatchling", "pip")]
SHORT_RUN = """
import sys
from overhead.cli import main
from overhead.profiles import PROFILES, Plan
times = dict(sampling_s=1.0, wall_s=60.0, case_s=0.05)
PROFILES["quick"] = Plan(processes=2, precision=0.5, max_rounds=6, **times)
sys.exit(main(["run", "-p", "numpy", "--profile", "quick", "--out", "run.json"]))
"""
WHERE = """
import overhead.claims, overhead.probes.floor, sys
print(overhead.__file__, overhead.claims.__file__, overhead.probes.floor.__file__, sep="\\n")
"""


def build(source: Path, kind: str, out: Path) -> Path:
    """The wheel or the sdist of a source folder, written to ``out``."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(out)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (built,) = out.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    unpacked = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        # Python before 3.11.4 has no filters, and takes no argument for one.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(unpacked)
    (source,) = unpacked.iterdir()
    return build(source, "wheel", tmp_path_factory.mktemp("wheel"))


@dataclass(frozen=True)
class Installed:
    """A virtual environment with the wheel, and an empty folder in which its programs run."""

    programs: Path
    folder: Path

    def call(self, program: str, *arguments: str, code: int = 0) -> str:
        """Run a program of the environment, which ends with this code. Returns what it printed."""
        environment = {
            name: text for name, text in os.environ.items() if not name.startswith("PYTHON")
        }
        command = [str(self.programs / program), *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + (done.stderr if code else "")


def base_packages() -> set[Path]:
    """The files and folders of the packages that the base install needs, in this interpreter."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    paths: dict[str, set[Path]] = {}
    while wanted:
        one = Requirement(wanted.pop())
        if one.name not in paths and (one.marker is None or one.marker.evaluate({"extra": ""})):
            found = distribution(one.name)
            wanted += found.requires or []
            tops = {file.parts[0] for file in found.files or []} - {".."}
            paths[one.name] = {Path(str(found.locate_file(top))) for top in tops}
    return set().union(*paths.values())


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The dependencies are links to those of this interpreter; no other package of it is seen."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, with_pip=False)
    programs = place / ("Scripts" if sys.platform == "win32" else "bin")
    install = ["install", "-q", "--no-index", "--no-deps", "--no-cache-dir", str(wheel)]
    command = [sys.executable, "-m", "pip", "--python", str(programs / "python"), *install]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(place), "platbase": str(place)}))
    for path in base_packages():
        if not (site / path.name).exists():
            (site / path.name).symlink_to(path)
    return Installed(programs, tmp_path_factory.mktemp("empty"))


def test_the_wheel_has_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = (
        path
        for path in (ROOT / "overhead").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )
    example = f"overhead/loading/{example_path().name}"
    assert packed == {example, *(path.relative_to(ROOT).as_posix() for path in files)}
    assert {
        "overhead/reading/next_run.json",
        "overhead/claims/claims.toml",
        "overhead/traces/published.json",
        "overhead/blocks/page.html.j2",
    } <= packed


def test_the_example_in_the_wheel_is_the_committed_run(wheel: Path, installed: Installed) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = archive.read(f"overhead/loading/{example_path().name}")
    assert packed == (ROOT / "reports" / "data" / example_path().name).read_bytes()
    shown = json.loads(installed.call("overhead", "show", "--json"))
    assert shown["example"] is True
    assert len(shown["records"]) == len(json.loads(packed)["records"])


def test_the_installed_program_says_what_to_type_first(installed: Installed) -> None:
    assert installed.call("overhead").count("    overhead ") == 5
    assert "did you mean 'time'" in installed.call("overhead", "tiem", code=2)


def test_the_installed_program_comes_from_the_wheel(installed: Installed) -> None:
    assert installed.call("overhead", "--version").strip() == f"overhead {__version__}"
    for path in installed.call("python", "-c", WHERE).split():
        assert Path(path).is_relative_to(installed.programs.parent)
        assert not Path(path).is_relative_to(ROOT)


def test_the_installed_program_measures_and_reads_its_file(installed: Installed) -> None:
    installed.call("python", "-c", SHORT_RUN)
    found = json.loads((installed.folder / "run.json").read_text("utf-8"))
    assert any(record["stack"] == "numpy" and record.get("figures") for record in found["records"])
    assert "numpy" in installed.call("overhead", "show", "run.json")
    assert json.loads(installed.call("overhead", "claims", "run.json", "--json"))


def test_the_base_install_shows_a_file_and_names_what_else_it_needs(installed: Installed) -> None:
    example = str(ROOT / "docs" / "example-fingerprint.json")
    assert "report" in installed.call("overhead", "--help")
    assert "Base cases" in installed.call("overhead", "show", example)
    stacks = ["-p", "numpy", "-p", "wgpu-native"]
    listed = {
        row["stack"]: row
        for row in json.loads(installed.call("overhead", "list", "--json", *stacks))
    }
    assert listed["numpy"]["targets"]
    assert install_command("wgpu") in listed["wgpu-native"]["missing"][0]["mend"]
    assert install_command("report") in installed.call("overhead", "report", example, code=2)
