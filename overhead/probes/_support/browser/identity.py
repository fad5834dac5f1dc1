"""Who measured: browser, adapter and API from what the page says of itself, and whether that is a GPU at all."""

from __future__ import annotations

import re

from msgspec.structs import replace

from overhead.probes._support.browser.launch import Browser, Kind
from overhead.probes._support.browser.wire import Page, PageAdapter
from overhead.results import Api, Target

_SOFTWARE = re.compile(r"swiftshader|llvmpipe|lavapipe|softpipe|software|warp\b|basic render|\bcpu\b", re.IGNORECASE)
_LOGGED = re.compile(
    r'Request adapter result AdapterInfo \{ name: "([^"]*)".*? device_type: (\w+),.*? driver: "([^"]*)", '
    r'driver_info: "([^"]*)", backend: (\w+)'
)
UNNAMED = "not named by the browser"


def named_by_log(page: Page, log: str) -> Page:
    """The page with the adapter that Firefox's log names, where the page itself was told nothing."""
    found = _LOGGED.findall(log)
    if page.adapter is None or adapter_name(page.adapter) != UNNAMED or not found:
        return page
    name, kind, driver, info, backend = found[-1]
    adapter = replace(
        page.adapter, description=name[:200], type="CPU" if kind == "Cpu" else kind, driver=f"{driver} {info}"[:200],
        backend=backend.lower(),
    )  # fmt: skip
    return replace(page, adapter=adapter)


def adapter_name(adapter: PageAdapter) -> str:
    """The most telling of the names that the browser gives."""
    family = " ".join(word for word in (adapter.vendor, adapter.architecture) if word)
    return adapter.description or (adapter.device if _is_name(adapter.device) else "") or family or UNNAMED


def is_software(adapter: PageAdapter) -> bool:
    """Whether it must not pass as a GPU: a fallback, a processor, a software renderer's name, or no name at all."""
    said = " ".join((adapter.vendor, adapter.architecture, adapter.device, adapter.description, adapter.driver))
    unknown = adapter_name(adapter) == UNNAMED
    return bool(adapter.fallback or adapter.forced or adapter.type == "CPU" or _SOFTWARE.search(said) or unknown)


def api(page: Page) -> Api:
    """The API below WebGPU: as the browser says, else the one that browsers use on the platform."""
    said = page.adapter.backend.lower() if page.adapter else ""
    named: dict[str, Api] = {"vulkan": "Vulkan", "metal": "Metal", "d3d12": "D3D12", "d3d11": "D3D12",
                             "opengl": "OpenGL", "opengles": "OpenGL"}  # fmt: skip
    if said in named:
        return named[said]
    where = f"{page.platform} {page.user_agent}".lower()
    if "mac" in where or "iphone" in where or "ipad" in where:
        return "Metal"
    return "D3D12" if "win" in where else "Vulkan"


def engine(page: Page) -> Kind:
    """The family of the browser: its engine decides what a dispatch costs, not its maker."""
    if "Firefox/" in page.user_agent:
        return "firefox"
    return "chromium" if "Chrome/" in page.user_agent or page.brands else "safari"


def version(page: Page) -> str:
    """Name and version from the page's own words."""
    named = [brand for brand in page.brands if not brand.startswith("Not")]
    if named:
        return next((brand for brand in named if not brand.startswith("Chromium ")), named[0])
    found = re.search(r"(Firefox|Edg|Chrome|Version)/([\d.]+)", page.user_agent)
    return f"{'Safari' if found[1] == 'Version' else found[1]} {found[2]}" if found else page.user_agent[:100]


def flags(page: Page) -> list[str]:
    """What a reader of the figures should know of the page."""
    found = [] if page.isolated else ["page-not-isolated"]
    if page.adapter is not None and adapter_name(page.adapter) == UNNAMED:
        found.append("adapter-unnamed-counted-as-software")
    return found


def target(stack: str, page: Page, browser: Browser) -> Target:
    """The browser's adapter as a target; what the browser was set to goes into the versions."""
    assert page.adapter is not None
    adapter = page.adapter
    said = {
        "": browser.version() or version(page),
        "user-agent": page.user_agent[:200],
        "fallback adapter": "not said" if adapter.fallback is None else str(adapter.fallback).lower(),
        "adapter fields": " / ".join((adapter.vendor, adapter.architecture, adapter.device, adapter.type))[:200],
        "clock step": f"{page.clock_step_ns} ns",
        "cross-origin isolated": str(page.isolated).lower(),
    }
    return Target(
        stack=stack, api=api(page), adapter=adapter_name(adapter)[:200], software=is_software(adapter),
        driver=adapter.driver,
        versions={f"{stack} {name}".strip(): text for name, text in {**said, **browser.settings}.items()},
    )  # fmt: skip


def _is_name(text: str) -> bool:
    """Chromium's ``device`` is a PCI number, which is no name."""
    return bool(text) and not text.startswith("0x")
