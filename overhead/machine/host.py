"""The only module that reads from the host: files, commands, counters. It raises no errors. Tests
replace ``Host``.
"""

from __future__ import annotations

import ctypes
import glob
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

# Homebrew's folder on Apple silicon is not searched without its path.
_VULKAN_LOADERS = {
    "win32": ["vulkan-1.dll"],
    "darwin": ["libvulkan.1.dylib", "/opt/homebrew/lib/libvulkan.1.dylib"],
}


class Host:
    """The machine that this process runs on. A value that cannot be read is empty or None."""

    platform: str = sys.platform
    """``linux``, ``darwin`` or ``win32``."""

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment variables of this process."""
        return os.environ

    def read(self, path: str) -> str:
        """The content of a small text file without space around it; empty if it cannot be read."""
        try:
            with open(path, "rb") as file:
                return file.read(1 << 22).decode("utf-8", "replace").strip("\0 \r\n\t")
        except OSError:
            return ""

    def names(self, pattern: str) -> list[str]:
        """The sorted paths that match the pattern."""
        return sorted(glob.glob(pattern))

    def run(self, *command: str) -> str:
        """The output of a program without space around it; empty if it is missing, fails, or takes
        more than 10 s. ``command``: its name and its arguments.
        """
        program = shutil.which(command[0])
        if program is None:
            return ""
        try:
            done = subprocess.run(
                [program, *command[1:]],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=10,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return ""
        return self._text(done.stdout).strip()

    def _text(self, output: bytes) -> str:
        """The output of a program as text: it is UTF-8, except that old programs of Windows write
        in the system's OEM code page. No byte raises an error.
        """
        try:
            return output.decode("utf-8")
        except UnicodeDecodeError:
            return output.decode("oem" if self.platform == "win32" else "utf-8", "replace")

    def nvidia_smi(self, *fields: str) -> list[list[str]]:
        """What the program ``nvidia-smi`` of NVIDIA's driver says of each GPU: a row per GPU, with
        a text for each of these fields. Empty if the program, a GPU or a field is missing.
        """
        query = f"--query-gpu={','.join(fields)}"
        text = self.run("nvidia-smi", query, "--format=csv,noheader,nounits")
        rows = []
        for line in text.splitlines():
            row = [cell.strip() for cell in line.split(",")]
            # A message of the program, such as that there is no GPU, has no such columns.
            if len(row) == len(fields):
                rows.append(row)
        return rows

    def processors_beside(self, bus: str) -> str:
        """The processors next to a PCI device as ranges, such as ``0-3,8``; empty where the system
        does not tell.

        ``bus``: as in ``pci.bus_id`` of ``nvidia-smi``.
        """
        # nvidia-smi writes the PCI domain with 8 digits, Linux with 4: ``0000:3b:00.0`` has 12
        # characters.
        return self.read(f"/sys/bus/pci/devices/{bus.lower()[-12:]}/local_cpulist")

    def psutil(self, function: str, **arguments: Any) -> Any:
        """The result of the function of psutil (a library that reads counters of the system) with
        this name.

        None if the function is missing or raises, which rare systems cause, or if psutil is not
        installed: a worker may run in another Python.
        """
        try:
            import psutil

            return getattr(psutil, function)(**arguments)
        except Exception:
            return None

    def usable_cores(self) -> int | None:
        """The number of cores that this process may run on; None if unknown."""
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count()

    def load(self) -> float | None:
        """The mean number of runnable processes in the last minute. None on Windows, which does not
        count them.
        """
        return os.getloadavg()[0] if hasattr(os, "getloadavg") else None

    def system(self) -> tuple[str, str]:
        """The operating system and the kernel, each with its version, such as ``Ubuntu 24.04 LTS``
        and ``6.8.0``.
        """
        if self.platform == "darwin":
            return f"macOS {platform.mac_ver()[0]}", platform.release()
        if self.platform == "win32":
            return f"Windows {platform.release()}", platform.version()
        # The name of the distribution; without one it is "Linux".
        name = platform.system()
        for line in self.read("/etc/os-release").splitlines():
            if line.startswith("PRETTY_NAME="):
                name = line.partition("=")[2].strip('"')
                break
        return name, platform.release()

    def processor(self) -> str:
        """The name of the processor, or of its architecture where the system does not tell."""
        return platform.processor() or platform.machine()

    def debugged(self) -> list[str]:
        """Reasons why this interpreter and the workers are slow; empty for a plain interpreter."""
        slow = {
            "debug build of Python": hasattr(sys, "gettotalrefcount"),
            "development mode": sys.flags.dev_mode,
        }
        return [words for words, present in slow.items() if present]

    def vulkan_loader(self) -> str:
        """The version of the Vulkan loader, the library through which programs reach the Vulkan
        drivers; empty if there is none. Asking for its version loads no driver.
        """
        version = ctypes.c_uint32()
        for name in _VULKAN_LOADERS.get(self.platform, ["libvulkan.so.1"]):
            try:
                ctypes.CDLL(name).vkEnumerateInstanceVersion(ctypes.byref(version))
            # There is no such library, or it is too old for this function.
            except (OSError, AttributeError):
                continue
            # As the macros of Vulkan's headers take the number apart.
            major = version.value >> 22 & 0x7F
            minor = version.value >> 12 & 0x3FF
            patch = version.value & 0xFFF
            return f"{major}.{minor}.{patch}"
        return ""


HOST = Host()
