"""Test that a package whose entry point fails in any way is listed as unavailable, and that
everything else works.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from overhead import probes
from overhead.errors import BadPlugin
from overhead.results import because, codes_of
from tests.fakes.plugins import forget_plugins_afterwards

ROOT = Path(__file__).resolve().parents[2]
GOOD = """
from overhead.probes import register
from overhead.probes.base import Probe, Space
from overhead.results import Case, Target

@register
class Good(Probe):
    name = "{name}"
    title = "a stack of another package"

    def targets(self):
        return [Target(stack="{name}", api="CPU", adapter="A")]

    def space(self, target):
        return Space(base=Case(pattern="per-submit"))

    def open(self, target, case):
        raise NotImplementedError
"""
BROKEN = {
    "raises": ("raise ValueError('line one\\nline two')", "ValueError: line one line two"),
    "exits": ("import sys; sys.exit(0)", "SystemExit: 0"),
    "exits-at-once": (
        "import os; os._exit(0)",
        "ended-while-imported (why=process-exited (exit_code=0)",
    ),
    "crashes": (
        "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
        "process-killed (signal=SIGSEGV)" if os.name == "posix" else "exit_code=11",
    ),
    "hangs": (
        "import time; time.sleep(600)",
        "ended-while-imported (why=process-silent (limit_s=3",
    ),
    "registers-nothing": ("x = 1", "why=registers-nothing"),
    "takes-a-name": (GOOD.format(name="numpy"), "the stack name 'numpy' is taken"),
    "abstract": (
        GOOD.format(name="abstract").replace("def open", "def close"),
        "TypeError: Can't instantiate",
    ),
    "wrong-environments": (
        GOOD.format(name="wrong-environments")
        + "    def environments(self):\n        return None\n",
        "Good.environments() is None",
    ),
}
LISTED = """
import json
from overhead import probes
from overhead.probes.common import entry_points
entry_points.IMPORT_S = 3
missing = {m.stack: str(m.reason) for m in probes.unavailable_packages()}
print(json.dumps([list(probes.registry()), missing]))
"""


def install(folder: Path, name: str, code: str) -> Path:
    """Write a package with one entry point to a folder that is on the path of a child."""
    module = f"{name.replace('-', '_')}_module"
    (folder / f"{module}.py").write_text(code)
    info = folder / f"overhead_{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: overhead-{name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[overhead.probes]\n{name} = {module}\n")
    return folder / f"{module}.py"


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=environment, timeout=240
    )


def listed(folder: Path) -> tuple[list[str], dict[str, str]]:
    done = python(folder, "-c", LISTED)
    assert done.returncode == 0, done.stderr
    names, unavailable = json.loads(done.stdout)
    return names, unavailable


def test_an_installed_package_that_fails_to_import_is_unavailable_and_others_still_register(
    tmp_path: Path,
) -> None:
    for name, (code, _) in BROKEN.items():
        install(tmp_path, name, code)
    install(tmp_path, "good", GOOD.format(name="good"))
    names, unavailable = listed(tmp_path)
    assert {"good", "numpy"} <= set(names)
    assert not set(BROKEN) & set(names)
    assert set(unavailable) == set(BROKEN)
    for name, (_, words) in BROKEN.items():
        assert "package-unusable" in unavailable[name], name
        assert f"package=overhead-{name}" in unavailable[name], name
        assert words in unavailable[name], name
        assert "\n" not in unavailable[name]


def test_a_plugin_file_replaces_the_stack_of_an_installed_package_with_a_message(
    tmp_path: Path,
) -> None:
    file = install(tmp_path, "good", GOOD.format(name="good"))
    code = (
        "from overhead import probes; from pathlib import Path;"
        f" probes.registry();print(*probes.load_plugin(Path({str(file)!r})).values());"
        " print(type(probes.registry()['good']).__module__)"
    )
    done = python(tmp_path, "-c", code)
    assert done.stdout.splitlines() == [
        str(
            because(
                "plugin-replaces", path=file, kind="stack", name="good", package="overhead-good"
            )
        ),
        "overhead_plugin_good_module",
    ]


def test_a_plugin_file_that_does_not_exist_is_told_from_one_that_is_no_python_file(
    tmp_path: Path,
) -> None:
    (tmp_path / "text.txt").write_text("text")
    for name, code in (("none.py", "no-such-file"), ("text.txt", "not-a-python-file")):
        with pytest.raises(BadPlugin) as refused:
            probes.load_plugin(tmp_path / name)
        assert code in codes_of(refused.value.why)


def test_a_plugin_that_raises_while_it_is_imported_registers_no_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_plugins_afterwards(monkeypatch)
    (tmp_path / "p.py").write_text(GOOD.format(name="half") + "\nraise ValueError\n")
    with pytest.raises(BadPlugin):
        probes.load_plugin(tmp_path / "p.py")
    assert "half" not in probes.registry()
