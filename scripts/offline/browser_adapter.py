#!/usr/bin/env python
"""Print the GPU adapter that a browser gives to a page, and the GPU that the browser itself names.

    OVERHEAD_BROWSER=PROGRAM OVERHEAD_BROWSER_FLAGS=... \\
        python scripts/offline/browser_adapter.py [SECONDS]

One line of JSON; the exit code is 0 for a hardware adapter, 1 for a software one, 3 for none.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from overhead.probes.base import Unavailable
from overhead.probes.browser import identity
from overhead.probes.browser.launch import BROWSER, Browser, find_browser, kind_of
from overhead.probes.browser.session import BrowserSession

DEVICE_FACTS = ("vendorId", "deviceId", "driverVersion")
FEATURES = ("webgpu", "vulkan", "opengl", "gpu_compositing")
RENDERER_FACTS = (
    "gl_vendor",
    "glRenderer",
    "glVersion",
    "displayType",
    "vulkanVersion",
    "glImplementationParts",
)


def page_adapter(browser: Browser, seconds: float) -> dict[str, Any]:
    """What the page is told of the adapter, or the reason why it has none."""
    try:
        session = BrowserSession(browser, start_seconds=seconds)
    except Unavailable as refused:
        return {"reason": refused.reason}
    session.close()
    adapter = session.page.adapter
    if adapter is None:
        return {"reason": session.page.reason}
    return {"software": identity.is_software(adapter), **msgspec.to_builtins(adapter)}


def gpu_info(browser: Browser, seconds: float) -> dict[str, Any]:
    """Chromium's own word, by its debugging pipe: devices, features and renderer, as chrome://gpu
    shows them.
    """
    to_browser, from_us = os.pipe()
    from_browser, to_us = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        *command, _page = browser.command(Path(profile), "about:blank")
        # Chromium reads its commands from descriptor 3, and answers on descriptor 4.
        with_pipe = ["sh", "-c", f'exec "$@" 3<&{to_browser} 4>&{to_us}', "sh", *command]
        child = subprocess.Popen(
            [*with_pipe, "--remote-debugging-pipe"],
            pass_fds=(to_browser, to_us),
            env={**os.environ, "TMPDIR": profile},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(to_us)
        try:
            os.write(from_us, b'{"id":1,"method":"SystemInfo.getInfo"}\0')
            answer = _until_zero(from_browser, time.monotonic() + seconds)
        except OSError as error:
            answer = json.dumps({"error": str(error)}).encode()
        finally:
            child.kill()
            child.wait()
            os.close(from_us)
            os.close(from_browser)
    gpu = json.loads(answer or b"{}").get("result", {}).get("gpu")
    if gpu is None:
        return {"reason": answer.decode(errors="replace")[:300] or "no answer"}
    devices = [_picked(device, DEVICE_FACTS) for device in gpu["devices"]]
    renderer = _picked(gpu["auxAttributes"], RENDERER_FACTS)
    features = _picked(gpu.get("featureStatus", {}), FEATURES)
    return {"devices": devices, **renderer, "features": features}


def _picked(facts: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The facts of these names; None for a fact that Chromium does not tell."""
    return {name: facts.get(name) for name in names}


def _until_zero(source: int, deadline: float) -> bytes:
    """What the browser writes on the pipe until the zero byte that ends its answer, or until the
    deadline.
    """
    answer = b""
    while time.monotonic() < deadline and not answer.endswith(b"\0"):
        readable, _, _ = select.select([source], [], [], 0.2)
        if readable:
            chunk = os.read(source, 1 << 16)
            if not chunk:
                break
            answer += chunk
    return answer.rstrip(b"\0")


def main() -> int:
    """Print what the page and the browser are told. Returns the exit code: 0 for a hardware
    adapter, 1 for a software one, 3 for none.
    """
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 15.0
    kind = kind_of(os.environ.get(BROWSER, "chromium"))
    browser = find_browser(kind)
    page = page_adapter(browser, seconds)
    answers = {"page": page}
    if kind == "chromium":
        answers["browser"] = gpu_info(browser, seconds)
    print(json.dumps(answers))
    if "reason" in page:
        return 3
    return 1 if page["software"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
