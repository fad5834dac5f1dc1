"""Name, API and kind of adapters and browsers, and how browsers are found and started."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from overhead.probes.base import Unavailable
from overhead.probes.browser import identity, launch
from overhead.probes.browser.launch import Browser
from overhead.probes.browser.messages import Page, PageAdapter

CHROME = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0"
    " Safari/537.36"
)
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0"
SAFARI = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)"
    " Version/26.0 Safari/605"
)
LOG = (
    "*** You are running in headless mode.\n[INFO  wgpu_core::instance] Request adapter result"
    ' AdapterInfo { name: "llvmpipe (LLVM 15.0.6, 256 bits)", vendor: 65541, device: 0,'
    ' device_type: Cpu, device_pci_bus_id: "", driver: "llvmpipe", driver_info: "Mesa 22.3.6 (LLVM'
    ' 15.0.6)", backend: Vulkan, subgroup_min_size: 8 }\n'
)


def page(agent: str = CHROME, adapter: PageAdapter | None = None, **more: Any) -> Page:
    return Page(user_agent=agent, adapter=adapter or PageAdapter(), **more)


@pytest.mark.parametrize(
    "fields",
    [
        {"fallback": True, "description": "NVIDIA H100"},
        {"forced": True, "description": "NVIDIA H100"},
        {"type": "CPU", "description": "Something new"},
        {"vendor": "google", "architecture": "swiftshader"},
        {"driver": "SwiftShader driver 5.0.0", "vendor": "google"},
        {"device": "0xc0de"},
    ],
)
def test_is_software_recognises_adapters_that_are_no_gpu(fields: dict[str, Any]) -> None:
    assert identity.is_software(PageAdapter(**fields))
    assert not identity.is_software(
        PageAdapter(vendor="intel", architecture="gen-12lp", device="0x9a49")
    )


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"description": "A", "device": "B", "vendor": "c"}, "A"),
        ({"device": "Apple M4", "vendor": "apple"}, "Apple M4"),
        ({"device": "0x2684", "vendor": "nvidia", "architecture": "lovelace"}, "nvidia lovelace"),
        ({"device": "0x2684"}, identity.UNNAMED),
    ],
)
def test_adapter_name_returns_the_most_specific_name_that_the_page_gives(
    fields: dict[str, Any], name: str
) -> None:
    assert identity.adapter_name(PageAdapter(**fields)) == name


def test_with_name_from_log_reads_the_adapter_name_from_the_log_of_firefox() -> None:
    named = identity.with_name_from_log(page(FIREFOX, PageAdapter(fallback=True)), LOG)
    target = identity.target("firefox", named, Browser("firefox", "/no/such/program"))
    assert target.adapter == "llvmpipe (LLVM 15.0.6, 256 bits)"
    assert target.driver == "llvmpipe Mesa 22.3.6 (LLVM 15.0.6)"
    assert (target.api, target.software) == ("Vulkan", True)
    assert identity.record_flags(named) == ["page-not-isolated"]


def test_with_name_from_log_does_not_replace_a_name_that_the_page_gives() -> None:
    named = page(CHROME, PageAdapter(description="NVIDIA H100"))
    assert identity.with_name_from_log(named, LOG) is named
    nameless = page(FIREFOX)
    assert identity.with_name_from_log(nameless, "nothing of the kind") is nameless
    assert identity.record_flags(nameless) == [
        "page-not-isolated",
        "adapter-unnamed-counted-as-software",
    ]


@pytest.mark.parametrize(
    ("agent", "backend", "platform", "api"),
    [
        (CHROME, "vulkan", "Linux", "Vulkan"),
        (CHROME, "D3D12", "Windows", "D3D12"),
        (SAFARI, "", "MacIntel", "Metal"),
        (FIREFOX, "", "Linux x86_64", "Vulkan"),
    ],
)
def test_api_is_derived_from_the_backend_or_else_from_the_platform(
    agent: str, backend: str, platform: str, api: str
) -> None:
    assert identity.api(page(agent, PageAdapter(backend=backend), platform=platform)) == api


@pytest.mark.parametrize(
    ("agent", "brands", "engine", "version"),
    [
        (
            CHROME,
            ["Chromium 156.0.1", "Microsoft Edge 156.0.2", "Not A 1"],
            "chromium",
            "Microsoft Edge 156.0.2",
        ),
        (CHROME, [], "chromium", "Chrome 156.0.0.0"),
        (FIREFOX, [], "firefox", "Firefox 153.0"),
        (SAFARI, [], "safari", "Safari 26.0"),
    ],
)
def test_browser_engine_and_version_are_derived_from_the_user_agent_and_brands(
    agent: str, brands: list[str], engine: str, version: str
) -> None:
    one = page(agent, brands=brands)
    assert (identity.engine(one), identity.version(one)) == (engine, version)


def _program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


posix = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows runs no program without an extension"
)


@posix
def test_installed_programs_finds_browsers_in_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert launch.installed_programs("chromium", "linux") == []
    edge, chrome = _program(tmp_path / "microsoft-edge"), _program(tmp_path / "google-chrome")
    firefox = _program(tmp_path / "firefox-esr")
    assert launch.installed_programs("chromium", "linux") == [str(chrome), str(edge)]
    assert launch.installed_programs("firefox", "linux") == [str(firefox)]


@pytest.mark.parametrize(
    ("platform", "program"),
    [
        ("darwin", "Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
        ("win32", "Microsoft/Edge/Application/msedge.exe"),
    ],
)
def test_installed_programs_finds_browsers_in_the_folders_of_macos_and_windows(
    platform: str, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("PATH", "PROGRAMFILES(X86)", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, "")
    for variable in ("HOME", "USERPROFILE", "PROGRAMFILES"):
        monkeypatch.setenv(variable, str(tmp_path))
    assert str(_program(tmp_path / program)) in launch.installed_programs("chromium", platform)


def test_find_browser_raises_unavailable_if_there_is_no_browser(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(launch.BROWSER, raising=False)
    monkeypatch.setattr(launch, "installed_programs", lambda kind: [])
    with pytest.raises(Unavailable) as refused:
        launch.find_browser("chromium")
    assert refused.value.mend


@posix
def test_find_browser_returns_the_program_that_an_environment_variable_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(launch.BROWSER, str(_program(tmp_path / "firefox-nightly")))
    monkeypatch.setattr(launch, "installed_programs", lambda kind: ["/usr/bin/chromium"])
    assert launch.find_browser("firefox").program == str(tmp_path / "firefox-nightly")
    assert launch.find_browser("chromium").program == "/usr/bin/chromium"


@pytest.mark.parametrize(
    ("platform", "text", "words"),
    [
        (
            "win32",
            r'--profile=C:\Users\x "--log=C:\My Work\l.txt"',
            [r"--profile=C:\Users\x", r"--log=C:\My Work\l.txt"],
        ),
        ("linux", r"--a=b\ c '--d=e f' #g", ["--a=b c", "--d=e f", "#g"]),
    ],
)
def test_flags_are_divided_as_the_shell_of_the_system_does(
    platform: str, text: str, words: list[str]
) -> None:
    assert launch.split_flags(text, platform) == words


def test_an_environment_variable_adds_and_removes_browser_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(launch.FLAGS, "--use-vulkan=native '--a b' !--headless")
    browser = Browser("chromium", "chromium")
    command = browser.command(tmp_path, "http://127.0.0.1:1/#token=x")
    assert "--headless=new" not in command
    assert {
        "--use-vulkan=native",
        "--enable-unsafe-webgpu",
        f"--user-data-dir={tmp_path}",
        "--a b",
    } <= set(command)
    assert browser.settings["--use-vulkan"] == "native"
