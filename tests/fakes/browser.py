"""A program that stands in for a browser and its page. The first argument selects its behaviour."""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
from typing import Any

PAGE: dict[str, Any] = {
    "user_agent": "Mozilla/5.0 Chrome/1.0",
    "brands": ["Chromium 1.2.3"],
    "platform": "Linux",
    "isolated": True,
    "clock_step_ns": 5000,
    "adapter": {
        "vendor": "maker",
        "architecture": "kind",
        "description": "A GPU",
        "backend": "vulkan",
        "fallback": False,
    },
}


class Page:
    """Answers commands like the real page, but runs no unit."""

    def __init__(self, behaviour: str, url: str) -> None:
        self.behaviour = behaviour
        self.origin, _, self.token = url.partition("/#token=")
        self.secret = ""

    def post(self, path: str, body: Any) -> Any:
        headers = {
            "Content-Type": "application/json",
            "Origin": self.origin,
            "Authorization": f"Bearer {self.secret}",
        }
        request = urllib.request.Request(
            f"{self.origin}/{path}", json.dumps(body).encode(), headers
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def run(self) -> None:
        # Imported late: a browser that stays silent must print its line before the time limit of
        # its test.
        from overhead.probes.browser.page_files import kernel_hashes

        changes: dict[str, dict[str, Any]] = {
            "no-webgpu": {"adapter": None, "reason": "this browser offers no WebGPU"},
            "other-kernels": {"kernels": {"step.wgsl": "0" * 64}},
            "other-browser": {"user_agent": "Mozilla/5.0 Firefox/1.0", "brands": []},
        }
        self.secret = self.post(
            "hello",
            {
                **PAGE,
                "kernels": kernel_hashes(),
                **changes.get(self.behaviour, {}),
                "token": self.token,
            },
        )["secret"]
        answer: dict[str, Any] = {"id": 0}
        while (command := self.post("next", answer))["do"] != "end":
            if command["do"] != "idle":
                answer = {"id": command["id"], **self.answer(command)}

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        if command["do"] == "time":
            if self.behaviour == "crashes":
                os._exit(139)
            if self.behaviour == "hangs":
                time.sleep(60)
            if self.behaviour == "scope":
                return {"kind": "unverified", "error": "GPUValidationError: a rejected submit"}
            ns = [n + 1 for n in command["ns"]] if self.behaviour == "other-n" else command["ns"]
            return {"samples": [[n, 10 * n, 1000 + 20 * n] for n in ns]}
        return {}


def main() -> None:
    behaviour, *_, url = sys.argv[1:]
    print("the last words", flush=True)
    if behaviour == "ends":
        sys.exit(3)
    if behaviour == "silent":
        time.sleep(60)
    Page(behaviour, url).run()
    time.sleep(60)


main()
