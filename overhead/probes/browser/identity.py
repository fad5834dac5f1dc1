"""What the page says about itself: the browser, the adapter, the API, and whether the adapter is a
GPU.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from overhead.probes.browser.launch import Browser
from overhead.probes.browser.messages import Page, PageAdapter
from overhead.probes.common.availability import names_software_renderer
from overhead.results import Api, Target

_SOFTWARE = re.compile(r"software|\bcpu\b", re.IGNORECASE)
_LOGGED = re.compile(
    r'Request adapter result AdapterInfo \{ name: "([^"]*)".*? device_type: (\w+),.*? driver:'
    r' "([^"]*)", '
    r'driver_info: "([^"]*)", backend: (\w+)'
)
_APIS: dict[str, Api] = {
    "vulkan": "Vulkan",
    "metal": "Metal",
    "d3d12": "D3D12",
    "d3d11": "D3D12",
    "opengl": "OpenGL",
    "opengles": "OpenGL",
}
UNNAMED = "not named by the browser"


def with_name_from_log(page: Page, log: str) -> Page:
    """The page's description, with the adapter's name from the log of Firefox if it has none
    itself: Firefox does not tell a page the name, but logs it. ``log``: what the browser printed.
    """
    logged = _LOGGED.findall(log)
    if page.adapter is None or adapter_name(page.adapter) != UNNAMED or not logged:
        return page
    name, kind, driver, info, backend = logged[-1]  # the newest request for an adapter
    adapter = replace(
        page.adapter,
        # At most 200 characters, as in all texts of a page.
        description=name[:200],
        type="CPU" if kind == "Cpu" else kind,
        driver=f"{driver} {info}"[:200],
        backend=backend.lower(),
    )
    return replace(page, adapter=adapter)


def adapter_name(adapter: PageAdapter) -> str:
    """The most specific adapter name that the browser gives, or ``UNNAMED``."""
    family = " ".join(word for word in (adapter.vendor, adapter.architecture) if word)
    # In Chromium the field ``device`` is a PCI number.
    device = "" if adapter.device.startswith("0x") else adapter.device
    return adapter.description or device or family or UNNAMED


def is_software(adapter: PageAdapter) -> bool:
    """True if the adapter is no GPU: a fallback adapter, a CPU, or a software renderer. An unnamed
    adapter counts as one too, so that its figures are never taken for those of a GPU. ``forced``:
    the page found the adapter only by asking for a fallback adapter.
    """
    if adapter.fallback or adapter.forced or adapter.type == "CPU":
        return True
    if adapter_name(adapter) == UNNAMED:
        return True
    # A software renderer is known by its name, such as llvmpipe, or by a word such as software or
    # CPU.
    text = " ".join(
        (adapter.vendor, adapter.architecture, adapter.device, adapter.description, adapter.driver)
    )
    return names_software_renderer(text) or _SOFTWARE.search(text) is not None


def api(page: Page) -> Api:
    """The API that WebGPU uses: the one that the browser names, else the usual one of the
    platform.
    """
    backend = page.adapter.backend.lower() if page.adapter else ""
    if backend in _APIS:
        return _APIS[backend]
    # The platform may be empty; the user agent then names it.
    system = f"{page.platform} {page.user_agent}".lower()
    if "mac" in system or "iphone" in system or "ipad" in system:
        return "Metal"
    return "D3D12" if "win" in system else "Vulkan"


def engine(page: Page) -> str:
    """The engine of the browser, from its user agent: ``firefox``, ``chromium`` or ``safari``."""
    if "Firefox/" in page.user_agent:
        return "firefox"
    return "chromium" if "Chrome/" in page.user_agent or page.brands else "safari"


def version(page: Page) -> str:
    """Name and version of the browser, from its brands or its user agent."""
    # Chromium adds a brand such as "Not A Brand", so that no page relies on the list. Browsers made
    # of Chromium name Chromium and themselves.
    brands = [brand for brand in page.brands if not brand.startswith("Not")]
    # A brand has the form "Name version", so the name and version of the browser are one brand.
    own_brands = [brand for brand in brands if not brand.startswith("Chromium ")]
    if brands:
        return own_brands[0] if own_brands else brands[0]
    in_user_agent = re.search(r"(Firefox|Edg|Chrome|Version)/([\d.]+)", page.user_agent)
    if in_user_agent is None:
        return page.user_agent[:100]
    name, number = in_user_agent.groups()
    if name == "Version":  # Safari writes its version as "Version/17.4"
        name = "Safari"
    return f"{name} {number}"


def record_flags(page: Page) -> list[str]:
    """Remarks for the record of each case that the page measured. ``page-not-isolated``: the page
    is not cross-origin isolated; browsers give such a page a coarser clock.
    ``adapter-unnamed-...``: what ran is unknown, so its figures do not count as those of a GPU.
    """
    flags = []
    if not page.isolated:
        flags.append("page-not-isolated")
    if page.adapter is not None and adapter_name(page.adapter) == UNNAMED:
        flags.append("adapter-unnamed-counted-as-software")
    return flags


def target(stack: str, page: Page, browser: Browser | None = None) -> Target:
    """The target (the device and all that was told of it) for the adapter of the page, which must
    have one.

    ``browser``: the browser that this program started, whose version and settings are recorded;
    None for a page that a person opened, whose browser is known only from what the page says.
    """
    assert page.adapter is not None
    adapter = page.adapter
    own_version = ""
    settings: dict[str, str] = {}
    if browser is not None:
        own_version = browser.version()
        settings = browser.settings
    # Whether the browser calls it a fallback adapter; None if it does not say.
    fallback = "not said"
    if adapter.fallback is not None:
        fallback = str(adapter.fallback).lower()
    fields = " / ".join((adapter.vendor, adapter.architecture, adapter.device, adapter.type))

    # The target keeps these among its versions, as "firefox clock step". The version of the browser
    # itself is "firefox" alone.
    described = {
        "": own_version or version(page),
        "user-agent": page.user_agent[:200],
        "fallback adapter": fallback,
        "adapter fields": fields[:200],
        "clock step": f"{page.clock_step_ns} ns",
        "cross-origin isolated": str(page.isolated).lower(),
        **settings,
    }
    return Target(
        stack=stack,
        api=api(page),
        adapter=adapter_name(adapter)[:200],
        software=is_software(adapter),
        driver=adapter.driver,
        versions={f"{stack} {name}".strip(): text for name, text in described.items()},
    )
