"""Set up and run: ``python scripts/bootstrap.py report|test|lint|bench|site|release|clean
[arguments passed on]``.

Standard library alone. It makes ``.venv`` beside this folder, installs what this machine can use,
and does it again only when something changed. Environment variables that steer it:

EXTRAS=a,b          exactly these extras of pyproject.toml ("none" for the base alone) instead of
those that fit here SYSTEM_PACKAGES=1   use the system's Python packages and no network SYSTEM=skip
install nothing through the system's package manager BROWSERS=1          install Chromium and
Firefox through it as well
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "overhead-setup.json"
"""What the last set-up put into the environment."""
WHOLE = "overhead-made"
"""A file in the environment. A set-up that was killed while it made the environment leaves none."""
PYTORCH_INDEX = "https://download.pytorch.org/whl/"
HAS_TORCH = "import importlib.metadata as m; m.version('torch')"
LINK_REPOSITORY = """
import importlib.util, pathlib, sys, sysconfig

root, *needed = sys.argv[1:]
path_file = pathlib.Path(sysconfig.get_path("purelib"), "overhead.pth")
path_file.write_text(f"{root}\\n", "utf-8")
sys.exit(", ".join(name for name in needed if importlib.util.find_spec(name) is None))
"""
"""Runs in the environment: lets it import the repository, and writes to stderr which packages it
lacks.
"""
CUDA_PACKAGE = re.compile(r"(nvidia|cuda)-")
MINIMUM = (3, 11)
NOT_FOR_TESTS = {"completion", "cuda12", "cuda13", "cute", "notebook", "numba-cuda", "site"}
"""Extras that need a GPU, and those that ``dev`` has too or that build the site."""
TARGETS = ("report", "test", "lint", "bench", "site", "release", "clean")
SIZES = {"report": "300 MB to download, 1.3 GB on disk", "test": "1 GB to download, 3 GB on disk"}
"""What ``.venv`` takes on Linux without a GPU, measured in November 2026. The other targets take a
tenth of it.
"""
SHOWN_MB = 1.0
"""A download below this is not shown."""
OPENCL_DRIVERS = Path("/etc/OpenCL/vendors")
MANIFESTS = ("/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d")
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FIREFOX = ("firefox", "firefox-esr")


class Trouble(Exception):
    """An error with its remedy in one line."""


def say(line: str) -> None:
    """Print a line at once, so that it stands before what a command prints next."""
    print(f"overhead: {line}", flush=True)


def call(command: list[str], **more: Any) -> int:
    """Run a command in the repository. On Ctrl-C, wait for the child, which gets the signal too and
    saves its data.
    """
    process = subprocess.Popen(command, cwd=ROOT, **more)
    try:
        return process.wait()
    except KeyboardInterrupt:
        return process.wait() or 130


def quiet(command: list[str], **more: Any) -> bool:
    """Run a command without output. Returns whether it succeeded."""
    nowhere = subprocess.DEVNULL
    return call(command, stdin=nowhere, stdout=nowhere, stderr=nowhere, **more) == 0


# The machine


def cuda_version() -> int | None:
    """The CUDA version that the NVIDIA driver supports, 1000 * major + 10 * minor; None without a
    usable GPU.
    """
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        version = ctypes.c_int()
        count = ctypes.c_int()
        errors = [
            driver.cuInit(0),
            driver.cuDriverGetVersion(ctypes.byref(version)),
            driver.cuDeviceGetCount(ctypes.byref(count)),
        ]
    except (OSError, AttributeError):
        return None
    if any(errors) or not count.value:
        return None
    return version.value


def project() -> dict[str, Any]:
    """The table ``project`` of pyproject.toml."""
    import tomllib

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return dict(settings["project"])


def wanted_extras(target: str, cuda: int | None, chosen: str = "") -> set[str]:
    """The extras to install for a target: those for this machine (or the chosen ones), and those
    the target needs.
    """
    needed = {
        "test": "dev,report",
        "lint": "dev",
        "report": "report",
        "bench": "dev",
        "site": "report,site",
        "release": "dev",
    }
    extras = set(needed[target].split(","))
    if chosen:
        return extras | chosen_extras(chosen)
    if target in ("lint", "bench", "site", "release"):
        return extras
    extras |= {"wgpu", "torch"}
    if target == "test":
        # JAX takes another 350 MB, ONNX Runtime 150, Ray 200, Warp 390, PyOpenCL 10, MLX 40. The
        # tests run what an extra has, unless it is for a GPU; else these must be chosen explicitly.
        extras |= set(project()["optional-dependencies"]) - NOT_FOR_TESTS
    if cuda is not None and cuda >= 12000:
        major = min(cuda // 1000, 13)
        extras.add(f"cuda{major}")
    return extras


def chosen_extras(chosen: str) -> set[str]:
    """The extras that the variable ``EXTRAS`` names, such as ``wgpu,torch``. ``none`` names no
    extra.

    Raises ``Trouble`` if it names one that the project does not have.
    """
    extras = {extra.strip() for extra in chosen.split(",")} - {"", "none"}
    known = set(project()["optional-dependencies"])
    unknown = extras - known
    if unknown:
        raise Trouble(
            f"EXTRAS names {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}"
        )
    return extras


# The system's own packages


def has_vulkan_loader() -> bool:
    """Whether the system has the library through which programs find Vulkan drivers."""
    try:
        ctypes.CDLL("libvulkan.so.1")
    except OSError:
        return False
    return True


def has_vulkan_driver() -> bool:
    """Whether a Vulkan driver is installed: one that a variable names, or a manifest of one."""
    if os.environ.get("VK_DRIVER_FILES") or os.environ.get("VK_ICD_FILENAMES"):
        return True
    return any(any(Path(folder).glob("*.json")) for folder in MANIFESTS)


def has_opencl_for_processors() -> bool:
    """Whether an OpenCL driver for processors, PoCL or Intel's, is registered. A GPU's driver
    offers no processor.
    """
    for driver in OPENCL_DRIVERS.glob("*.icd"):
        library = driver.read_text("utf-8", "replace").lower()
        if "pocl" in library or "intelocl" in library:
            return True
    return False


def has_venv() -> bool:
    """Whether Python can make a virtual environment with pip. Debian has that in another package,
    which the set-up may just have installed.
    """
    importlib.invalidate_caches()
    return importlib.util.find_spec("ensurepip") is not None


def system_needs(
    target: str, extras: set[str], browsers: bool, distribution: str
) -> dict[str, str]:
    """The system packages to install (Debian or Ubuntu names), each with the reason."""
    needs = {}
    if not has_venv():
        major, minor = sys.version_info[:2]
        needs[f"python{major}.{minor}-venv"] = "to make a virtual environment"
    if target in ("report", "test"):
        if not has_vulkan_loader():
            needs["libvulkan1"] = "the Vulkan loader, without which no WebGPU stack finds a device"
        if not has_vulkan_driver():
            needs["mesa-vulkan-drivers"] = "Vulkan drivers, lavapipe among them, which needs no GPU"
    if "opencl" in extras and not has_opencl_for_processors():
        needs["pocl-opencl-icd"] = (
            "OpenCL for the processor, without which PyOpenCL finds no device"
        )
    if browsers:
        ubuntu = distribution == "ubuntu"
        if not any(map(shutil.which, CHROMIUM)):
            package = "chromium-browser" if ubuntu else "chromium"
            needs[package] = "BROWSERS=1; its SwiftShader serves other stacks too"
        if not any(map(shutil.which, FIREFOX)):
            package = "firefox" if ubuntu else "firefox-esr"
            needs[package] = "BROWSERS=1"
    return needs


def distribution() -> tuple[str, bool]:
    """The id of the Linux distribution, and whether it is based on Debian."""
    try:
        text = Path("/etc/os-release").read_text("utf-8")
    except OSError:
        return "", False
    fields = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.M))
    family = {fields.get("ID", ""), *fields.get("ID_LIKE", "").split()}
    return fields.get("ID", ""), bool(family & {"debian", "ubuntu"})


def as_root() -> list[str] | None:
    """The words in front of a command that run it as root; None if this needs a password."""
    if sys.platform != "win32" and os.geteuid() == 0:
        return []
    sudo = ["sudo", "-n"]
    if shutil.which("sudo") and quiet([*sudo, "true"]):
        return sudo
    return None


def install_system(needs: dict[str, str], debian: bool) -> None:
    """Install the missing packages, or print how to install them. The set-up continues after a
    failure.
    """
    for package, reason in needs.items():
        say(f"missing: {package} ({reason})")
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *needs]
    if not debian:
        say(
            "to add them: your distribution's Vulkan loader (vulkan-loader, vulkan-icd-loader),"
            " Mesa drivers and PoCL (pocl)"
        )
        return
    prefix = as_root()
    if prefix is None:
        say(f"to add them: sudo {shlex.join(command)}")
        return
    say(f"installing them: {shlex.join(command)} (SYSTEM=skip leaves the system alone)")
    without_questions = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive"]
    call([*without_questions, "apt-get", "update", "-qq"])
    if call([*without_questions, *command], stdout=subprocess.DEVNULL):
        say("that failed; going on without them")


# The virtual environment


def venv_python() -> str:
    """The path of the environment's Python."""
    program = "Scripts/python.exe" if sys.platform == "win32" else "bin/python"
    return str(VENV / program)


def in_venv(code: str) -> bool:
    """Whether this code runs without an error in the environment's Python."""
    return Path(venv_python()).exists() and quiet([venv_python(), "-c", code])


def pip(*arguments: str) -> list[str]:
    """The command that runs the environment's pip."""
    return [venv_python(), "-m", "pip", "--disable-pip-version-check", *arguments]


def set_up(target: str) -> None:
    """Make or update ``.venv`` for the target. This is fast if nothing has changed."""
    system_packages = os.environ.get("SYSTEM_PACKAGES") == "1"
    cuda = None if system_packages else cuda_version()
    wanted = wanted_extras(target, cuda, os.environ.get("EXTRAS", ""))
    key = environment_key(system_packages, cuda)
    stamp = read_stamp()
    leave_system = sys.platform != "linux" or os.environ.get("SYSTEM") == "skip"
    system = [] if leave_system else prepare_system(target, wanted, stamp)
    already_there: set[str] = set()
    if stamp.get("key") == key:
        already_there = set(stamp["extras"])
        if wanted <= already_there:
            say_left_out(wanted & set(stamp["left_out"]))
            return
    if not system_packages and not has_venv():
        raise Trouble(
            "Python's module ensurepip is missing: install what is named above (python3-venv), then"
            " again"
        )
    if target in SIZES and not system_packages:
        amount = SIZES[target]
        if cuda:
            amount = f"with CUDA some gigabytes more than {amount}"
        say(f"setting up {VENV.name} for {target} ({', '.join(sorted(wanted))}): {amount}")
    make_venv(system_packages)
    extras = wanted | already_there
    left_out = use_system_packages(target) if system_packages else install(extras, cuda)
    outcome = {"key": key, "extras": sorted(extras), "left_out": sorted(left_out), "system": system}
    STAMP.write_text(json.dumps(outcome), "utf-8")


def environment_key(system_packages: bool, cuda: int | None) -> str:
    """A hash of all that an environment was made from. Another key needs a new set-up."""
    inputs = [
        (ROOT / "pyproject.toml").read_bytes(),
        Path(__file__).read_bytes(),
        os.fsencode(ROOT),
        sys.version.encode(),
        str((system_packages, cuda)).encode(),
    ]
    return hashlib.sha256(b"\0".join(inputs)).hexdigest()


def read_stamp() -> dict[str, Any]:
    """What the last set-up wrote of the environment; empty if there is none."""
    try:
        return dict(json.loads(STAMP.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def say_left_out(extras: set[str]) -> None:
    """Say which of the wanted extras the last set-up could not install, if any."""
    if extras:
        names = ", ".join(sorted(extras))
        say(f"left out at set-up: {names} (make clean, then again, to look anew)")


def prepare_system(target: str, extras: set[str], stamp: dict[str, Any]) -> list[str]:
    """Install system packages, except those that could not be installed last time. Returns all
    missing packages.
    """
    name, debian = distribution()
    needs = system_needs(target, extras, os.environ.get("BROWSERS") == "1", name)
    if set(needs) - set(stamp.get("system", [])):
        install_system(needs, debian and shutil.which("apt-get") is not None)
    return sorted(needs)


def make_venv(system_packages: bool) -> None:
    """Make the environment, unless there is a whole one of this Python; say why one is replaced."""
    STAMP.unlink(missing_ok=True)
    if VENV.exists():
        fault = fault_of_venv(system_packages)
        if not fault:
            return
        say(f"replacing {VENV}, because {fault}")
    else:
        say(f"making {VENV}")
    options = ["--clear"]
    if system_packages:
        options += ["--system-site-packages", "--without-pip"]
    if call([sys.executable, "-m", "venv", *options, str(VENV)]):
        raise Trouble(f"could not make {VENV}")
    (VENV / WHOLE).touch()


def fault_of_venv(system_packages: bool) -> str:
    """Why the folder of the environment cannot be used; '' if it can."""
    try:
        text = (VENV / "pyvenv.cfg").read_text("utf-8")
    except OSError:
        return "it is no environment"
    settings = dict(re.findall(r"^([\w-]+) = (.*)$", text, re.M))
    if not settings:
        return "it is no environment"
    version = settings.get("version", "an unknown version")
    major, minor = sys.version_info[:2]
    if not version.startswith(f"{major}.{minor}."):
        this = f"{sys.version.split()[0]}, {sys.executable}"
        return f"it has Python {version}, and this is {this} (make PYTHON=...)"
    if settings.get("include-system-site-packages") != str(system_packages).lower():
        with_or_without = "without" if system_packages else "with"
        return f"it was made {with_or_without} SYSTEM_PACKAGES=1"
    has_all = (VENV / WHOLE).exists() and in_venv("pass" if system_packages else "import pip")
    return "" if has_all else "it is not whole"


def use_system_packages(target: str) -> set[str]:
    """Make the repository importable together with the system's Python packages.

    Raises ``Trouble`` with the packages that are missing.
    """
    requirements = project()["dependencies"]
    needed = [re.split(r"[^\w-]", requirement)[0] for requirement in requirements]
    needed += {"test": ["pytest"], "lint": ["ruff", "mypy"]}.get(target, [])
    command = [venv_python(), "-c", LINK_REPOSITORY, str(ROOT), *needed]
    done = subprocess.run(command, capture_output=True, text=True)
    missing = done.stderr.strip()
    if missing:
        raise Trouble(f"SYSTEM_PACKAGES=1, and {sys.executable} has no {missing}")
    return set()


def install(extras: set[str], cuda: int | None) -> set[str]:
    """Install the project with its extras. Returns the extras that are not available for this
    machine.
    """
    left_out = set()
    if "torch" in extras and not install_torch(cuda):
        is_chosen = "torch" in os.environ.get("EXTRAS", "")
        if not is_chosen:
            left_out.add("torch")
            say(
                "going on without torch; EXTRAS=report,wgpu,torch takes the default build, some"
                " gigabytes on Linux"
            )
    chosen = sorted(extras - left_out)
    say(f"installing Python packages ({', '.join(chosen) or 'base'})")
    if pip_install(["--editable", f".[{','.join(chosen)}]"]):
        raise Trouble(
            "pip could not install the packages; without a network, SYSTEM_PACKAGES=1 uses the"
            " system's"
        )
    return left_out


def pip_install(arguments: list[str]) -> int:
    """Install with pip, and print what it downloads and unpacks, since that takes a minute. Returns
    its exit code.

    No bytecode is made: that takes a third of the time, and most of it is never used.
    """
    command = pip("install", "--no-compile", "--progress-bar=off", *arguments)
    pipe = subprocess.PIPE
    last_lines: deque[str] = deque(maxlen=20)
    with subprocess.Popen(
        command, cwd=ROOT, stdout=pipe, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as run:
        assert run.stdout is not None
        for line in run.stdout:
            last_lines.append(line)
            step = pip_step(line)
            if step:
                say(f"  {step}")
    if run.returncode:
        print("".join(last_lines), file=sys.stderr, end="", flush=True)
    return run.returncode


def pip_step(line: str) -> str:
    """What a line of pip's output tells about its progress; '' for most lines."""
    line = line.strip()
    download = re.match(r"Downloading (?P<url>\S+) \((?P<size>[\d.]+) (?P<unit>[MG])B\)", line)
    if download is not None:
        is_large = download["unit"] == "G" or float(download["size"]) >= SHOWN_MB
        if not is_large:
            return ""
        file = download["url"].rpartition("/")[2]
        package = file.partition("-")[0]
        return f"downloading {package} ({download['size']} {download['unit']}B)"
    if line.startswith("Installing collected packages:"):
        packages = line.count(",") + 1
        return f"unpacking {packages} package{'s' if packages > 1 else ''}"
    return ""


# torch


def install_torch(cuda: int | None) -> bool:
    """Install torch for this machine from a local wheel or PyTorch's index. Returns False if there
    is none.
    """
    if in_venv(HAS_TORCH):
        return True
    requirement = project()["optional-dependencies"]["torch"][0]
    if cuda:
        # The Linux build on PyPI is for CUDA 13. All other builds are on PyTorch's index.
        if sys.platform == "linux" and cuda >= 13000:
            return True
        index = PYTORCH_INDEX + ("cu130" if cuda >= 13000 else "cu126")
        return fetch_torch(requirement, ["--index-url", index], lean=False)
    if sys.platform != "linux":
        return True
    if fetch_torch(requirement, ["--no-index"], lean=True):
        return True
    index = PYTORCH_INDEX + "cpu"
    soon = ["--timeout", "10", "--retries", "1"]
    if fetch_torch(requirement, ["--index-url", index, *soon], lean=True):
        return True
    say(
        f"no CPU build of torch: none in a local wheel folder, and {index} is out of reach or has"
        " none for this Python"
    )
    return False


def fetch_torch(requirement: str, source: list[str], lean: bool) -> bool:
    """Install only torch from one source. Returns whether it worked. ``lean``: no builds that need
    CUDA packages.
    """
    packages = resolve([requirement, "--no-deps", *source])
    if not packages:
        return False
    metadata = packages[0]["metadata"]
    needs_cuda = any(map(CUDA_PACKAGE.match, metadata.get("requires_dist", [])))
    if lean and needs_cuda:
        return False
    url = packages[0]["download_info"]["url"]
    say(f"installing torch {metadata['version']} from {url}")
    return pip_install(["--no-deps", url]) == 0


def resolve(arguments: list[str]) -> list[dict[str, Any]]:
    """The packages that pip would install, from its report. Empty if pip fails."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.json")
        # The user's configuration may add an index with the CUDA build. Only the source given here
        # must be used.
        settings = {**os.environ, "PIP_EXTRA_INDEX_URL": ""} if "--no-deps" in arguments else None
        command = pip("install", "--dry-run", "--quiet", "--report", str(path), *arguments)
        if not quiet(command, env=settings):
            return []
        report = json.loads(path.read_text("utf-8"))
        return list(report["install"])


# The targets


def report(arguments: list[str]) -> int:
    """Measure this machine, and draw the pages of its runs."""
    run = ["run", "--profile", "quick", "--out", "reports/local", *arguments]
    for words in (run, ["report"]):
        code = call([venv_python(), "-m", "overhead", *words])
        if code:
            say(f"'overhead {shlex.join(words)}' ended with exit code {code}")
            return code
    return 0


def test(arguments: list[str]) -> int:
    """Run the tests, without slow ones unless the arguments choose them by ``-m``."""
    # One worker per file, because some files draw a page or compile once for all of their tests.
    parallel = ["-n", "2", "--dist", "loadfile"] if in_venv("import xdist") else []
    has_choice = any(argument.startswith("-m") for argument in arguments)
    chosen = [] if has_choice else ["-m", "not slow"]
    return call([venv_python(), "-m", "pytest", *parallel, *chosen, *arguments])


def lint(arguments: list[str]) -> int:
    """Run all checks of the code, or those of the files in the arguments. Returns the worst exit
    code: each check runs, also after one that failed.
    """
    # mypy finds what another system's Python lacks. Code for another system is unreachable.
    where = arguments or ["."]
    checks = [
        ["ruff", "format", "--check", *where],
        ["ruff", "check", *where],
        ["mypy", *arguments],
    ]
    if not arguments:
        for name in ("darwin", "win32"):
            checks.append(["mypy", f"--platform={name}", "--no-warn-unreachable", "overhead"])
    codes = [call([venv_python(), "-m", *check]) for check in checks]
    zizmor = Path(venv_python()).with_name("zizmor.exe" if sys.platform == "win32" else "zizmor")
    if zizmor.exists() and not arguments:
        options = ["--offline", "--quiet", "--no-progress", "--strict-collection"]
        codes.append(call([str(zizmor), *options, ".github/workflows", "docs/examples"]))
    elif not arguments:
        say("no zizmor: the workflows are not checked")
    return max(codes)


def bench(arguments: list[str]) -> int:
    """Run the benches that check the method."""
    return call([venv_python(), "scripts/bench/main.py", *arguments])


def site(arguments: list[str]) -> int:
    """Write the static site."""
    return call([venv_python(), "scripts/site.py", *arguments])


def release(arguments: list[str]) -> int:
    """Build what a release uploads, and check it."""
    return call([venv_python(), "scripts/release.py", *arguments])


def clean() -> int:
    """Remove the files of set-up and tools. Measurements in reports/local are kept."""
    made = [VENV]
    made += [ROOT / name for name in ("build", "dist", ".coverage")]
    made += [ROOT / f".{tool}_cache" for tool in ("mypy", "pytest", "ruff")]
    pages = ROOT / "reports"
    made += [pages / name for name in ("index.html", "figures", "pages", "example", "downloads")]
    for top in ("overhead", "scripts", "tests", "docs"):
        made += (ROOT / top).rglob("__pycache__")
    for path in made:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    say(f"cleaned; measurements stay in {ROOT / 'reports' / 'local'}")
    return 0


def main(arguments: list[str]) -> int:
    """Set up ``.venv`` for a target of the Makefile and run the target. Returns the exit code."""
    if not arguments or arguments[0] not in TARGETS:
        print(__doc__)
        return 2
    target, *rest = arguments
    try:
        if target == "clean":
            return clean()
        if sys.version_info[:2] < MINIMUM:
            raise Trouble(
                f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}: make PYTHON=..."
            )
        set_up(target)
        functions = {
            "report": report,
            "test": test,
            "lint": lint,
            "bench": bench,
            "site": site,
            "release": release,
        }
        return functions[target](rest)
    except (Trouble, OSError) as error:
        say(f"{target} failed: {error}")
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
