"""Build what a release uploads into ``dist`` and check it: ``make release``. It uploads nothing.

Each check prints one line: ``ok``, or ``failed`` with what to do. The exit code is 1 if a check
failed.
"""

from __future__ import annotations

import email
import email.message
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from scripts.long_description import relative_links  # noqa: E402

MOST_BASE_MB = 25.0
"""The most that all wheels of the base install may have together, in MB of 1,000,000 bytes.

A promise to users, not a limit of an index. SciPy alone has 35 MB, so only developers install it.
"""
OF_SDIST = {"CHANGELOG.md", "LICENSE", "Makefile", "PKG-INFO", "README.md", "pyproject.toml"}
OF_SDIST_FOLDERS = ("docs/", "overhead/", "scripts/", "tests/")
"""What an sdist must have: these files, and a file in each of these folders."""
NEVER = re.compile(r"(^|/)(__pycache__|\.git|\.venv|build|reports/local)/|\.py[co]$")
"""What no upload may have: what Python, git, a build or a measurement left in the folder."""
RUN = "run"
NEEDS_GPU = "not run: it needs a GPU and torch; the same command is run with a call of Python's own"
README_COMMANDS: dict[str, str] = {
    "pip install .": RUN,
    """overhead time "x.add_(1)" -s "import torch; x = torch.zeros(256, device='cuda')\"""": (
        NEEDS_GPU
    ),
    "overhead explain train.py:build": "not run: the file is the reader's",
    "overhead explain --trace tests/data/traces/h200_training_step.json.gz": (
        "not run: tests explain this trace"
    ),
    "make report": "not run: it measures for minutes",
    "make test": "not run: the tests have a workflow of their own",
    "pip install overhead": "not run: for the index, once this release is uploaded",
}
"""Each command of README.md: ``run`` by these checks, or why it is not. An unknown command fails a
check, so that whoever adds one to README.md decides here how it is tested.
"""
INSTALLED_COMMANDS = (
    ("overhead", "--help"),
    ("overhead", "time", "--quick", "sorted(a)", "-s", "a = [3, 1, 2]"),
    ("overhead", "show"),
    ("python", "-c", "import overhead; overhead.time, overhead.load"),
)
"""What is run with the wheel, and with the sdist, in an empty environment and an empty folder."""


class Failed(Exception):
    """A check failed: what is wrong, and what to do."""


@dataclass(frozen=True)
class Built:
    """The two files of a release."""

    sdist: Path
    wheel: Path


# What is checked, from names and texts


def check_wheel_files(packed: Collection[str], wanted: Collection[str]) -> str:
    """Check the names of the files of a wheel against those that it should have. Returns the text
    after ``ok``.
    """
    files = {name for name in packed if ".dist-info/" not in name}
    missing = set(wanted) - files
    if missing:
        raise Failed(
            f"it lacks {_few(missing)}: see tool.hatch.build.targets.wheel in pyproject.toml"
        )
    strange = files - set(wanted)
    if strange:
        raise Failed(
            f"it has {_few(strange)}: leave it out in tool.hatch.build of pyproject.toml, or"
            " commit it"
        )
    return f"{len(files)} files"


def check_sdist_files(packed: Collection[str]) -> str:
    """Check the names of the files of an sdist."""
    missing = OF_SDIST - set(packed)
    for folder in OF_SDIST_FOLDERS:
        if not any(name.startswith(folder) for name in packed):
            missing.add(folder)
    if missing:
        raise Failed(
            f"it lacks {_few(missing)}: see tool.hatch.build.targets.sdist in pyproject.toml"
        )
    strange = {name for name in packed if NEVER.search(name)}
    if strange:
        raise Failed(
            f"it has {_few(strange)}: remove it (make clean), or leave it out in pyproject.toml"
        )
    return f"{len(packed)} files"


def check_no_paths(files: Mapping[str, bytes], places: Collection[str]) -> str:
    """Check that no file names a folder of this machine. ``places``: those folders."""
    for name, content in files.items():
        for place in places:
            if place.encode() in content:
                raise Failed(f"{name} names {place}, a folder of this machine: write it without")
    return f"none of {len(files)} files names a folder of this machine"


def newest_version(changelog: str) -> str:
    """The version of the newest section of the changelog, such as ``0.2.0`` or ``Unreleased``; ''
    if there is none.
    """
    heading = re.search(r"^## \[(?P<version>[^\]]+)\]", changelog, re.M)
    return heading["version"] if heading else ""


def check_version(version: str, changelog: str, tag: str = "") -> str:
    """Check that the wheel, the newest section of the changelog and the tag, if there is one, name
    the same version.
    """
    newest = newest_version(changelog)
    if newest == "Unreleased":
        raise Failed(
            f"it is {version}, and the newest section of CHANGELOG.md is Unreleased: name that"
            " section [VERSION] - DATE, and set __version__ in overhead/__init__.py"
        )
    if newest != version:
        in_changelog = newest or "is missing"
        raise Failed(
            f"it is {version}, and the newest section of CHANGELOG.md {in_changelog}: change one of"
            " them (__version__ in overhead/__init__.py)"
        )
    if tag and tag != f"v{version}":
        raise Failed(f"it is {version}, and the tag {tag}: tag v{version}")
    return version


def check_licence(metadata: email.message.Message, packed: Collection[str]) -> str:
    """Check that the metadata names the licence, and the wheel has its text."""
    licence = metadata.get("License-Expression", "")
    if not licence:
        raise Failed("the metadata names none: set project.license in pyproject.toml")
    if not any(name.endswith("/licenses/LICENSE") for name in packed):
        raise Failed("its text is not in the wheel: set project.license-files in pyproject.toml")
    return str(licence)


def check_description(metadata: email.message.Message) -> str:
    """Check that the long description is README.md, with links that hold on the page of an
    index.
    """
    content_type = metadata.get("Description-Content-Type", "").partition(";")[0]
    if content_type != "text/markdown":
        raise Failed("it is not marked as Markdown: see scripts/long_description.py")
    text = str(metadata.get_payload())
    if not text.startswith("# overhead"):
        raise Failed("it is not README.md: see scripts/long_description.py")
    relative = relative_links(text)
    if relative:
        raise Failed(
            f"{len(relative)} of its links name files beside README.md, such as {relative[0]},"
            " which an index does not have: set Repository in project.urls of pyproject.toml"
        )
    return "README.md with absolute links"


def commands_of(text: str) -> Iterator[tuple[int, str]]:
    """The commands of a Markdown text, each with the number of its line.

    A command is a line of a code block, fenced or indented; in a block with a prompt (``$``) only
    the lines with one, since the others are output. A comment such as ``<!-- release: pip install
    overhead -->`` has the command that a release puts there.
    """
    block: list[tuple[int, str]] = []
    is_fenced = False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.startswith("```"):
            is_fenced = not is_fenced
        elif is_fenced or line.startswith("    "):
            block.append((number, line.strip()))
            continue
        elif not line.strip() and block:
            continue  # in Markdown an indented block goes on after an empty line
        yield from _commands_of_block(block)
        block = []
        marked = re.fullmatch(r"<!-- release: (?P<command>.*) -->", line.strip())
        if marked is not None:
            yield number, marked["command"]
    yield from _commands_of_block(block)


def _commands_of_block(block: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The commands of one code block, without prompts and the comments behind them."""
    has_prompt = any(line.startswith("$ ") for _, line in block)
    for number, line in block:
        is_output = has_prompt and not line.startswith("$ ")
        if is_output:
            continue
        without_prompt = line.removeprefix("$ ")
        command = re.sub(r"\s+#\s.*", "", without_prompt).strip()
        if command:
            yield number, command


def check_readme(text: str, known: Mapping[str, str]) -> str:
    """Check that each command of README.md is run here, or that it is known why not."""
    commands = list(commands_of(text))
    for number, command in commands:
        if command not in known:
            raise Failed(
                f"line {number}: `{command}` is not known: add it to README_COMMANDS in"
                " scripts/release.py"
            )
    shown = {command for _, command in commands}
    unused = known.keys() - shown
    if unused:
        raise Failed(
            f"README_COMMANDS in scripts/release.py has {_few(unused)}, which README.md has not:"
            " remove it"
        )
    not_run = [command for command in sorted(shown) if known[command] != RUN]
    reasons = [f"`{command}` {known[command]}" for command in not_run]
    count = f"{len(shown) - len(not_run)} of {len(shown)} commands run"
    return "; ".join([count, *reasons])


def check_size(sizes: Mapping[str, int]) -> str:
    """Check the size of the base install. ``sizes``: bytes of each wheel by its name."""
    total_mb = sum(sizes.values()) / 1e6
    largest = max(sizes, key=lambda name: sizes[name])
    largest_mb = sizes[largest] / 1e6
    sizes_text = (
        f"{total_mb:.1f} MB in {len(sizes)} wheels, the largest is {largest} with"
        f" {largest_mb:.1f} MB"
    )
    if total_mb >= MOST_BASE_MB:
        raise Failed(
            f"{sizes_text}; {MOST_BASE_MB:.0f} MB are allowed: move a dependency into an extra"
        )
    return sizes_text


def _few(names: Collection[str]) -> str:
    """Three of the names, and how many more there are: ``a, b, c and 4 more``."""
    first = ", ".join(sorted(names)[:3])
    more = len(names) - 3
    return f"{first} and {more} more" if more > 0 else first


# What is built and installed


def wanted_files(root: Path) -> set[str]:
    """The files that the wheel should have: all of the package, and those that pyproject.toml
    adds.
    """
    files = [path for path in (root / "overhead").rglob("*") if path.is_file()]
    names = {path.relative_to(root).as_posix() for path in files}
    of_package = {name for name in names if not NEVER.search(name)}
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    settings = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    added = settings.get("force-include", {})
    return of_package | set(added.values())


def build(root: Path, out: Path) -> Built:
    """Build the sdist of the repository and its wheel into the folder ``out``, which is emptied
    before.
    """
    shutil.rmtree(out, ignore_errors=True)
    hatchling = [sys.executable, "-m", "hatchling", "build"]
    command = [*hatchling, "-t", "sdist", "-t", "wheel", "-d", str(out)]
    _call(command, root, "install hatchling, which the extra dev has")
    (sdist,) = out.glob("*.tar.gz")
    (wheel,) = out.glob("*.whl")
    return Built(sdist, wheel)


def files_of_wheel(path: Path) -> dict[str, bytes]:
    """The files of a wheel by name."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def files_of_sdist(path: Path) -> dict[str, bytes]:
    """The files of an sdist by name, without the folder that holds all."""
    files = {}
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            content = archive.extractfile(member)
            if content is not None:  # None for a folder
                _, _, name = member.name.partition("/")
                files[name] = content.read()
    return files


def metadata_of(files: Mapping[str, bytes]) -> email.message.Message:
    """The metadata of a wheel."""
    (name,) = [name for name in files if name.endswith(".dist-info/METADATA")]
    return email.message_from_string(files[name].decode())


def _call(command: list[str], folder: Path, mend: str) -> str:
    """Run a command. Returns its output, or raises ``Failed`` with its last line and with ``mend``:
    what to do.

    The command does not get the variables of this process that steer Python: ``PYTHONPATH`` would
    let it import the repository, where it should use what is installed.
    """
    settings = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
    }
    try:
        done = subprocess.run(
            command, cwd=folder, env=settings, capture_output=True, text=True, timeout=300
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"`{shlex.join(command)}` takes over 300 s: {mend}") from None
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        why = " ".join(last) or "no output"
        raise Failed(f"`{shlex.join(command)}` ended with {done.returncode} ({why}): {mend}")
    return done.stdout


def download(wheel: Path, folder: Path) -> dict[str, int]:
    """Download the wheels that the base install needs into a folder. Returns the bytes of each
    wheel by its name.
    """
    pip_download = [sys.executable, "-m", "pip", "download", "-q", "--only-binary=:all:"]
    command = [*pip_download, "-d", str(folder), str(wheel)]
    _call(command, folder, "it needs the network or a folder of wheels")
    sizes = {}
    for path in folder.glob("*.whl"):
        package = path.name.partition("-")[0]
        sizes[package] = path.stat().st_size
    return sizes


@dataclass(frozen=True)
class Environment:
    """An empty virtual environment, and an empty folder where its programs run."""

    place: Path
    folder: Path

    @classmethod
    def make(cls, place: Path) -> Environment:
        """Make both in this folder."""
        venv.create(place / "environment", with_pip=True)
        (place / "empty").mkdir()
        return cls(place / "environment", place / "empty")

    def program(self, name: str) -> str:
        """The path of a program of the environment."""
        programs = "Scripts" if sys.platform == "win32" else "bin"
        return str(self.place / programs / name)

    def install(self, what: str, folder: Path, only_from: Path | None = None) -> None:
        """Run ``pip install WHAT`` in ``folder``. ``only_from``: a folder of wheels, in place of an
        index.
        """
        command = [self.program("python"), "-m", "pip", "install", "-q"]
        if only_from is not None:
            command += ["--no-index", "--find-links", str(only_from)]
        _call([*command, what], folder, "see what pip says, in an empty environment")

    def run_commands(self, commands: Collection[tuple[str, ...]]) -> str:
        """Run each command in the empty folder, and check that Python imports the program from this
        environment.
        """
        for program, *arguments in commands:
            _call(
                [self.program(program), *arguments], self.folder, "it must work in the base install"
            )
        print_place = "import overhead, pathlib; print(pathlib.Path(overhead.__file__).resolve())"
        printed = _call([self.program("python"), "-c", print_place], self.folder, "it must import")
        used = printed.strip()
        if not Path(used).is_relative_to(self.place.resolve()):
            raise Failed(f"the program comes from {used}: install it into the environment itself")
        return f"{len(commands)} commands run in an empty environment"


# The checks, in order


class Checks:
    """Runs checks and prints a line for each. ``failed``: how many failed."""

    def __init__(self) -> None:
        self.failed = 0

    def check(self, name: str, run: Callable[[], str]) -> bool:
        """Run one check. Returns whether it passed. A check returns the text after ``ok``, or
        raises ``Failed``.
        """
        try:
            passed = run()
        except Failed as failure:
            self.failed += 1
            print(f"failed  {name}: {failure}", flush=True)
            return False
        print(f"ok      {name}: {passed}", flush=True)
        return True


def check_all(root: Path, out: Path, checks: Checks) -> None:
    """Build, and run all checks. What is built stays in ``out``. Nothing more is checked if the
    build fails.
    """
    built: list[Built] = []

    def built_files() -> str:
        files = build(root, out)
        built.append(files)
        return f"{_with_size(files.sdist)} and {_with_size(files.wheel)}"

    readme = (root / "README.md").read_text("utf-8")
    changelog = (root / "CHANGELOG.md").read_text("utf-8")
    is_of_tag = os.environ.get("GITHUB_REF_TYPE") == "tag"  # set where GitHub runs this
    tag = os.environ.get("GITHUB_REF_NAME", "") if is_of_tag else ""
    checks.check("README.md", lambda: check_readme(readme, README_COMMANDS))
    if not checks.check("build", built_files):
        return
    wheel, sdist = files_of_wheel(built[0].wheel), files_of_sdist(built[0].sdist)
    metadata = metadata_of(wheel)
    # Files that have nothing to do with this machine may hold these short names too.
    too_short = {"/", "/root"}
    places = {str(root), str(Path.home()), sys.prefix} - too_short
    checks.check("wheel", lambda: check_wheel_files(wheel, wanted_files(root)))
    checks.check("sdist", lambda: check_sdist_files(sdist))
    checks.check("paths", lambda: check_no_paths({**wheel, **sdist}, places))
    checks.check("version", lambda: check_version(metadata["Version"], changelog, tag))
    checks.check("licence", lambda: check_licence(metadata, wheel))
    checks.check("long description", lambda: check_description(metadata))
    with tempfile.TemporaryDirectory() as name:
        _check_installs(Path(name), built[0], checks)


def _with_size(path: Path) -> str:
    """``overhead-0.2.0.tar.gz (9.1 MB)``"""
    return f"{path.name} ({path.stat().st_size / 1e6:.1f} MB)"


def _check_installs(place: Path, built: Built, checks: Checks) -> None:
    """Download the base install, and install wheel and sdist, each into an empty environment below
    ``place``.

    The wheel is installed from the downloaded wheels alone. So the size that was checked is that of
    all that it needs. The sdist is installed as README.md says, by ``pip install .`` from an index,
    which has hatchling too: pip builds the wheel with it, and the downloaded wheels do not have it.
    """
    wheels = place / "wheels"
    wheels.mkdir()
    # This check comes first: it also fills the folder for the next one.
    checks.check("size of the base install", lambda: check_size(download(built.wheel, wheels)))

    def from_wheel() -> str:
        (place / "wheel").mkdir()
        environment = Environment.make(place / "wheel")
        environment.install(str(built.wheel), place, only_from=wheels)
        return environment.run_commands(INSTALLED_COMMANDS)

    def from_sdist() -> str:
        with tarfile.open(built.sdist) as archive:
            # Python before 3.11.4 has no filters, and takes no argument for one.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(place / "source")
        (source,) = (place / "source").iterdir()
        (place / "sdist").mkdir()
        environment = Environment.make(place / "sdist")
        environment.install(".", source)
        return environment.run_commands(INSTALLED_COMMANDS)

    checks.check("wheel installed", from_wheel)
    checks.check("sdist installed by pip install .", from_sdist)


def main() -> int:
    """Build and check; returns the exit code."""
    checks = Checks()
    out = ROOT / "dist"
    check_all(ROOT, out, checks)
    if checks.failed:
        print(f"{checks.failed} failed; nothing was uploaded")
        return 1
    (wheel,) = out.glob("*.whl")
    version = metadata_of(files_of_wheel(wheel))["Version"]
    print(
        "all passed; nothing was uploaded. To upload, push the tag, and the workflow `release`"
        " does it:"
    )
    print(f"    git tag v{version} && git push origin v{version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
