"""Identity, present state, versions and doctor, on simulated hosts and on this machine."""

from __future__ import annotations

import fnmatch
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from overhead import machine, results
from overhead.machine.doctor import DoctorCheck, run_checks
from overhead.machine.host import Host
from overhead.results import because
from overhead.words.doctor import ADVICE, told

SMI = "nvidia-smi --query-gpu={} --format=csv,noheader,nounits"
H100 = {
    SMI.format("name,pci.device_id"): "NVIDIA H100 80GB HBM3, 0x233010DE",
    SMI.format("driver_version"): "580.95.05",
    SMI.format(
        "clocks.sm,clocks.max.sm,temperature.gpu,pstate,utilization.gpu,persistence_mode,pci.bus_id"
    ): "1980, 1980, 31, P0, 0, Enabled, 00000000:01:00.0",
}
PCI = "/sys/bus/pci/devices/0000:01:00.0/"
CPU = "/sys/devices/system/cpu/"
LINUX = {
    "/proc/cpuinfo": "processor : 0\nmodel name\t: AMD  Ryzen 9 7950X\nflags\t\t: fpu tsc\n",
    "/etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 12"\nID=debian\n',
    f"{CPU}cpu0/cpufreq/scaling_governor": "powersave",
    f"{CPU}cpu1/cpufreq/scaling_governor": "performance",
    f"{CPU}smt/active": "1",
    f"{CPU}intel_pstate/no_turbo": "0",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet",
}


class FakeHost(Host):
    """A simulated host with given files and command outputs. All other values are unknown."""

    def __init__(
        self,
        files: Mapping[str, str] | None = None,
        commands: Mapping[str, str] | None = None,
        platform: str = "linux",
        environ: Mapping[str, str] | None = None,
        plugged: bool | None = None,
        load: float | None = 0.0,
    ) -> None:
        self.files, self.commands = dict(files or {}), dict(commands or {})
        self.platform, self._environ, self._plugged, self._load = (
            platform,
            dict(environ or {}),
            plugged,
            load,
        )

    @property
    def environ(self) -> Mapping[str, str]:
        return self._environ

    def read(self, path: str) -> str:
        return self.files.get(path, "").strip()

    def names(self, pattern: str) -> list[str]:
        return sorted(path for path in self.files if fnmatch.fnmatch(path, pattern))

    def run(self, *command: str) -> str:
        return self.commands.get(" ".join(command), "")

    def psutil(self, function: str, **arguments: object) -> Any:
        return {
            "cpu_count": 8,
            "virtual_memory": SimpleNamespace(total=67_200_000_000),
            "cpu_freq": (3000.4, 0.0, 5000.0),
            "sensors_battery": SimpleNamespace(power_plugged=self._plugged),
        }[function]

    def usable_cores(self) -> int | None:
        return 16

    def load(self) -> float | None:
        return self._load

    def debugged(self) -> list[str]:
        return []

    def vulkan_loader(self) -> str:
        return ""


def by_name(host: Host) -> dict[str, DoctorCheck]:
    return {check.name: check for check in run_checks(host)}


def test_linux_reports_processor_memory_and_gpus() -> None:
    found = machine.identity(FakeHost(LINUX, H100))
    assert found.cpu == "AMD Ryzen 9 7950X"
    assert (found.cores, found.memory_gib) == (8, 63)
    assert [gpu.name for gpu in found.gpus] == ["NVIDIA H100 80GB HBM3"]


def test_the_machine_id_depends_only_on_processor_memory_and_gpus() -> None:
    reference = machine.identity(FakeHost(LINUX, H100)).id
    newer_driver = H100 | {SMI.format("driver_version"): "999.1"}
    elsewhere = {"/etc/os-release": 'PRETTY_NAME="Another"', "/proc/version": "Linux 7"}
    same = FakeHost(
        LINUX | elsewhere, newer_driver, environ={"HOSTNAME": "x"}, plugged=True, load=9
    )
    assert machine.identity(same).id == reference
    assert machine.identity(FakeHost(LINUX)).id != reference
    assert (
        machine.identity(FakeHost(LINUX | {"/proc/cpuinfo": "model name : other"}, H100)).id
        != reference
    )


def test_the_state_has_the_processors_beside_each_gpu_and_those_that_serve_its_interrupts() -> None:
    node = "/sys/devices/system/node/node{}/cpulist"
    files = {
        **LINUX,
        f"{PCI}local_cpulist": "8-15",
        node.format(0): "0-7",
        node.format(1): "8-15",
        "/proc/interrupts": "      CPU0 CPU1 CPU2\n"
        " 33:  0  0  900  PCI-MSI  nvidia\n"
        " 34:  900  0  0  PCI-MSI  eth0\n",
    }
    found = machine.volatile(FakeHost(files, H100))
    assert found["gpu_processors"] == ["8-15"]
    assert found["gpu_interrupts"] == ["2"], "CPU2 counts the interrupts of nvidia"
    assert found["numa_nodes"] == ["node0: 0-7", "node1: 8-15"]
    alone = machine.volatile(FakeHost(LINUX, H100))
    assert not {"gpu_processors", "gpu_interrupts", "numa_nodes"} & {*alone}


def test_the_machine_id_does_not_depend_on_the_nvidia_driver() -> None:
    card = {f"{PCI}class": "0x030200", f"{PCI}vendor": "0x10de", f"{PCI}device": "0x2330"}
    with_driver, without = (
        machine.identity(FakeHost(LINUX | card, H100)),
        machine.identity(FakeHost(LINUX | card)),
    )
    assert with_driver.id == without.id
    assert [gpu.name for gpu in with_driver.gpus] == ["NVIDIA H100 80GB HBM3"]
    assert [gpu.name for gpu in without.gpus] == ["NVIDIA 10de:2330"]


@pytest.mark.parametrize(
    ("kind", "vendor"), [("0x030000", "0x1af4"), ("0x030000", "0x1a03"), ("0x020000", "0x8086")]
)
def test_virtual_displays_and_other_devices_do_not_count_as_gpus(kind: str, vendor: str) -> None:
    card = {f"{PCI}class": kind, f"{PCI}vendor": vendor, f"{PCI}device": "0x1050"}
    assert machine.identity(FakeHost(LINUX | card)).gpus == []


def test_an_arm_processor_is_named_by_lscpu() -> None:
    host = FakeHost(
        {"/proc/cpuinfo": "CPU part : 0xd40"},
        {"lscpu": "Vendor ID:  ARM\nModel name:   Neoverse-V2\n"},
    )
    assert machine.identity(host).cpu == "Neoverse-V2"


def test_macos_reports_processor_memory_and_gpu() -> None:
    displays = json.dumps({"SPDisplaysDataType": [{"sppci_model": "Apple M2"}, {"other": 1}]})
    commands = {
        "sysctl -n machdep.cpu.brand_string": "Apple M2",
        "system_profiler -json SPDisplaysDataType": displays,
    }
    found = machine.identity(FakeHost(commands=commands, platform="darwin"))
    assert found.cpu == "Apple M2"
    assert [gpu.name for gpu in found.gpus] == ["Apple M2"]
    commands["system_profiler -json SPDisplaysDataType"] = "[]"
    assert machine.identity(FakeHost(commands=commands, platform="darwin")).gpus == []


class FakeWindows(FakeHost):
    def run(self, *command: str) -> str:
        if command[0] == "reg":
            return "\n    ProcessorNameString    REG_SZ    Intel(R) Core(TM) Ultra 7\n"
        if command[0] == "powercfg":
            return "Power Scheme GUID: 381b4222  (Balanced)"
        if command[0] == "powershell" and "VideoController" in command[-1]:
            return (
                "PCI\\VEN_8086&DEV_7D55&SUBSYS_1\\3|Intel(R)"
                " Arc(TM)\nROOT\\BASICDISPLAY|Basic\nSWD\\x|Remote"
            )
        return "Virtual Machine" if command[0] == "powershell" else ""


def test_windows_reports_identity_and_state() -> None:
    host = FakeWindows(platform="win32", load=None)
    found, state = machine.identity(host), machine.volatile(host)
    assert found.cpu == "Intel(R) Core(TM) Ultra 7"
    assert [gpu.name for gpu in found.gpus] == ["Intel(R) Arc(TM)"]
    assert state["power_plan"] == "Balanced"
    assert state["virtual"] == "Virtual Machine"
    assert by_name(host)["power plan"].status == "warn"
    assert "free cores" not in by_name(host)


HIGH_PERFORMANCE = "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c"


@pytest.mark.parametrize(
    ("active", "status"),
    [
        (f"GUID des Energieschemas: {HIGH_PERFORMANCE}  (Höchstleistung)", "ok"),
        ("GUID des Energieschemas: 381b4222-f694-41f0-9685-ff5bb260df2e  (Ausbalanciert)", "warn"),
        ("Power Scheme GUID: 11111111-2222-3333-4444-555555555555  (My performance plan)", "ok"),
    ],
)
def test_a_power_plan_is_judged_by_its_id_because_its_name_is_translated(
    active: str, status: str
) -> None:
    class Translated(FakeWindows):
        def run(self, *command: str) -> str:
            return active if command[0] == "powercfg" else super().run(*command)

    assert by_name(Translated(platform="win32", load=None))["power plan"].status == status


def test_linux_reports_the_present_state() -> None:
    state = machine.volatile(FakeHost(LINUX, H100))
    assert state["governor"] == "performance, powersave"
    assert (state["smt"], state["turbo"], state["clock_source"]) == ("on", "on", "hpet")
    assert (state["cpu_mhz"], state["cpu_mhz_max"]) == (3000, 5000)
    assert "cpu_mhz_min" not in state
    assert state["gpu_mhz"] == ["1980"]


def test_injected_libraries_are_named_without_paths() -> None:
    layers = "/usr/share/vulkan/implicit_layer.d/"
    files = {
        f"{layers}a.json": '{"layer": {"name": "VK_LAYER_MANGOHUD_overlay"}}',
        f"{layers}b.json": "broken",
    }
    host = FakeHost(files, environ={"LD_PRELOAD": "/home/jane/spy.so", "PATH": "/bin"})
    assert machine.volatile(host)["injected"] == [
        "LD_PRELOAD=…/spy.so",
        "VK_LAYER_MANGOHUD_overlay",
        "b.json",
    ]
    assert by_name(host)["injected layers"].status == "bad"


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"/sys/fs/cgroup/cpu.max": "150000 100000"}, 1.5),
        ({"/proc/self/cgroup": "0::/a/b", "/sys/fs/cgroup/a/b/cpu.max": "400000 100000"}, 4.0),
        ({"/sys/fs/cgroup/cpu.max": "max 100000"}, None),
    ],
)
def test_the_cpu_quota_is_read_from_the_control_group(
    files: dict[str, str], quota: float | None
) -> None:
    assert machine.volatile(FakeHost(files)).get("cpu_quota") == quota


@pytest.mark.parametrize(
    ("files", "commands", "name"),
    [
        ({"/proc/version": "Linux 5.15-microsoft-standard-WSL2"}, {}, "wsl"),
        ({"/proc/cpuinfo": "flags : fpu hypervisor"}, {"systemd-detect-virt --vm": "kvm"}, "kvm"),
        (
            {"/proc/cpuinfo": "flags : fpu hypervisor", "/sys/class/dmi/id/sys_vendor": "QEMU"},
            {},
            "QEMU",
        ),
        ({"/proc/cpuinfo": "flags : fpu hypervisor"}, {}, "yes"),
        ({"/proc/cpuinfo": "flags : fpu"}, {"systemd-detect-virt --vm": "none"}, None),
    ],
)
def test_a_virtual_machine_is_reported_with_its_hypervisor(
    files: dict[str, str], commands: dict[str, str], name: str | None
) -> None:
    assert machine.volatile(FakeHost(files, commands)).get("virtual") == name


def test_macos_reports_the_present_state() -> None:
    commands = {"sysctl -n kern.hv_vmm_present": "1", "pmset -g": " lowpowermode         1\n"}
    host = FakeHost(commands=commands, platform="darwin", plugged=False)
    state = machine.volatile(host)
    assert state["virtual"] == "yes"
    assert state["low_power_mode"] is True
    assert state["power"] == "battery"
    assert {name for name, check in by_name(host).items() if check.status == "warn"} >= {
        "power",
        "low power mode",
    }


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"/.dockerenv": ""}, "docker"),
        ({"/run/.containerenv": ""}, "podman"),
        ({"/proc/1/cgroup": "0::/lxc/a"}, "lxc"),
    ],
)
def test_the_kind_of_a_container_is_reported(files: dict[str, str], name: str) -> None:
    assert machine.volatile(FakeHost(files))["container"] == name


def test_versions_contain_only_installed_packages() -> None:
    found = machine.versions(["msgspec", "no-such-package"], FakeHost(LINUX, H100))
    assert (found["os"], found["nvidia-driver"]) == ("Debian GNU/Linux 12", "580.95.05")
    assert {"python", "kernel", "msgspec"} <= set(found)
    assert not {"no-such-package", "vulkan-loader"} & set(found)


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_a_machine_that_reports_nothing_causes_no_error(platform: str) -> None:
    host = FakeHost(platform=platform, load=None)
    assert machine.identity(host).gpus == []
    assert machine.versions([], host)["python"]
    assert run_checks(host)


def test_identity_of_this_machine_is_plausible() -> None:
    header = results.HeaderEntry(
        schema_version=1,
        method_version=1,
        created="2026-01-01T00:00:00Z",
        profile="quick",
        machine=machine.identity(),
        volatile=machine.volatile(),
        versions=machine.versions(["numpy"]),
    )
    assert results.decode_entry(results.encode_entry(header)) == header
    assert header.machine.cores > 0
    assert header.machine == machine.identity()
    assert {check.status for check in run_checks()} <= {"ok", "warn", "bad"}
    assert all(check.name in ADVICE for check in run_checks() if check.status != "ok")


def test_doctor_reports_every_disturbance() -> None:
    found = by_name(FakeHost(LINUX, H100, load=15.0))
    disturbed = {name for name, check in found.items() if check.status != "ok"}
    assert disturbed == {
        "governor",
        "free cores",
        "clock source",
        "hyper-threading",
        "Vulkan loader",
    }
    assert all(told(found[name]).advice for name in disturbed)
    assert found["Vulkan loader"].status == "bad"


def test_doctor_finds_nothing_on_a_quiet_machine() -> None:
    quiet = {path: "performance" for path in LINUX if path.endswith("governor")} | {
        f"{CPU}smt/active": "0"
    }
    files = LINUX | quiet
    files["/sys/devices/system/clocksource/clocksource0/current_clocksource"] = "tsc"

    class Quiet(FakeHost):
        def vulkan_loader(self) -> str:
            return "1.4.0"

    found = run_checks(Quiet(files, H100, plugged=True))
    assert [check for check in found if check.status != "ok"] == []


def test_doctor_names_the_processors_that_serve_the_gpu() -> None:
    table = "CPU0 CPU1 CPU2\n 42: 0 0 9 PCI-MSIX-0000:00:06.0 0-edge nvidia"
    found = {check.name: check for check in run_checks(FakeHost({"/proc/interrupts": table}))}
    assert found["GPU interrupts"].found == because("interrupts-served-by", processors="2")
    assert found["GPU interrupts"].status == "ok"
    assert "GPU interrupts" not in {check.name for check in run_checks(FakeHost())}


def test_doctor_reports_a_busy_gpu_a_small_quota_and_a_missing_gpu() -> None:
    busy = H100 | {key: value.replace("P0, 0", "P0, 93") for key, value in H100.items()}
    found = by_name(FakeHost(LINUX | {"/sys/fs/cgroup/cpu.max": "100000 100000"}, busy))
    assert found["GPU in use"].found == because("gpus-busy", percent="93")
    assert found["CPU quota"].status == "bad"
    assert by_name(FakeHost(LINUX))["hardware GPU"].status == "warn"


def test_reading_from_this_machine_raises_no_errors(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    host = Host()
    assert host.read(str(tmp_path)) == ""
    assert (
        host.run("no-such-program-here")
        == host.run(sys.executable, "-c", "raise SystemExit(3)")
        == ""
    )
    assert host.run(sys.executable, "-c", "print('a'); print('b')").split() == ["a", "b"]
    monkeypatch.setattr("psutil.cpu_freq", lambda: 1 / 0)
    assert host.psutil("cpu_freq") is None
    for platform in ("darwin", "win32"):
        monkeypatch.setattr(Host, "platform", platform)
        assert all(
            isinstance(text, str)
            for text in (*host.system(), host.vulkan_loader(), host.processor())
        )
