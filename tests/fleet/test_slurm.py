"""The script for Slurm, with a stand-in for ``srun``."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from overhead.cli import main
from overhead.loading.files import read_fingerprint
from tests.fleet.nodes import program
from tests.trials import TOOLS

SRUN = """#!/bin/sh
while case "$1" in -*) ;; *) false ;; esac; do shift; done
for node in rack/n1 rack/n1 n2; do SLURMD_NODENAME=$node "$@" & done
wait
"""
MEASURE = """
import sys
from overhead.cli import main
from overhead.profiles import Plan, Scope, profiles, register_profile
profiles()
few = dict.fromkeys(("cheap", "fast", "slow", "polling"), 1)
times = dict(sampling_s=0.5, wall_s=20.0, case_s=0.02)
plan = Plan(processes=1, precision=0.5, max_cases=few, **times)
register_profile("node", plan, Scope(folder_per_node=True))
sys.exit(main([*sys.argv[1:], "-p", "numpy"]))
"""


@pytest.mark.slow
@pytest.mark.needs("shellcheck")
@pytest.mark.skipif(sys.platform == "win32", reason="Slurm and its stand-in are for POSIX")
def test_the_script_is_sound_and_gives_each_node_a_folder_and_each_task_a_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", "--sbatch"]) == 0
    script, out = program(tmp_path / "node.sbatch", capfd.readouterr().out), tmp_path / "out"
    checked = subprocess.run(
        [str(shutil.which("shellcheck", path=TOOLS)), str(script)], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout
    program(tmp_path / "srun", SRUN)
    measure = shlex.join([sys.executable, "-c", MEASURE])
    program(
        tmp_path / "overhead", f'#!/bin/sh\n[ "$1" = fleet ] && exec ls "$2"\nexec {measure} "$@"\n'
    )
    environment = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", str(script), str(out)], env=environment, capture_output=True, text=True
    )
    assert done.stdout.endswith("n2\nrack-n1\n"), done.stderr
    # The stand-in for ``srun`` starts two tasks on rack/n1, and one on n2.
    for name, tasks in {"n2": 1, "rack-n1": 2}.items():
        files = list((out / name).glob("*.json"))
        assert len(files) == tasks, done.stderr
        assert all(read_fingerprint(path).records for path in files)
