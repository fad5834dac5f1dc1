"""Compile each ``overhead/probes/kernels/*.comp`` to the committed ``.spv`` beside it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_KERNELS = Path(__file__).parents[1] / "overhead" / "probes" / "kernels"
COMPILER = "glslangValidator"


def sources() -> list[Path]:
    """The GLSL kernels."""
    return sorted(_KERNELS.glob("*.comp"))


def build(source: Path) -> bytes:
    """The source as SPIR-V 1.0 for Vulkan 1.0. Raises ``CalledProcessError`` where the source is
    wrong.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out.spv")
        command = [COMPILER, "--target-env", "vulkan1.0", "-o", str(out), str(source)]
        subprocess.run(command, check=True, capture_output=True, text=True)
        return out.read_bytes()


def main() -> int:
    """Compile all kernels. Returns the exit code: 1 if a source is wrong, 2 without a compiler."""
    if shutil.which(COMPILER) is None:
        print(f"{COMPILER} is not installed (Debian: apt install glslang-tools)", file=sys.stderr)
        return 2
    for source in sources():
        try:
            source.with_suffix(".spv").write_bytes(build(source))
        except subprocess.CalledProcessError as error:
            print(f"{source.name}: {error.stdout.strip()}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
