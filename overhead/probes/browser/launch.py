"""The browsers on this machine, and the command line that starts one with an empty profile."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal

from overhead.errors import unknown_name
from overhead.probes.base import Unavailable
from overhead.results import because

BROWSER = "OVERHEAD_BROWSER"
"""Environment variable: the program of the browser."""
FLAGS = "OVERHEAD_BROWSER_FLAGS"
"""Environment variable: flags to add to the command line. A flag after ``!`` is removed instead."""

BrowserKind = Literal["chromium", "firefox"]

_NAMES: dict[str, tuple[str, ...]] = {
    "chromium": (
        "chromium",
        "chromium-browser",
        "google-chrome-stable",
        "google-chrome",
        "chrome",
        "microsoft-edge-stable",
        "microsoft-edge",
        "msedge",
    ),
    "firefox": ("firefox", "firefox-esr"),
}
_MAC: dict[str, tuple[str, ...]] = {
    "chromium": ("Google Chrome", "Chromium", "Microsoft Edge"),
    "firefox": ("Firefox",),
}
_WINDOWS: dict[str, tuple[str, ...]] = {
    "chromium": (
        r"Google\Chrome\Application\chrome.exe",
        r"Chromium\Application\chrome.exe",
        r"Microsoft\Edge\Application\msedge.exe",
    ),
    "firefox": (r"Mozilla Firefox\firefox.exe",),
}
_WINDOWS_ROOTS = ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")

FIREFOX_ENVIRONMENT = {"RUST_LOG": "wgpu_core::instance=info", "MOZ_CRASHREPORTER_DISABLE": "1"}
"""With this log level Firefox logs the name of the adapter, which a page in Firefox cannot read."""
CHROMIUM_FLAGS = {
    "--headless": "new",
    "--enable-unsafe-webgpu": "",
    "--enable-webgpu-developer-features": "",
    "--disable-background-networking": "",
    "--disable-component-update": "",
    "--disable-sync": "",
    "--disable-breakpad": "",
    "--disable-hang-monitor": "",
    "--host-resolver-rules": "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--no-proxy-server": "",
    "--no-default-browser-check": "",
    "--no-first-run": "",
}
FIREFOX_FLAGS = {"--headless": "", "--no-remote": ""}
FIREFOX_PREFERENCES: dict[str, bool | int | str] = {
    "dom.webgpu.enabled": True,
    "gfx.webgpu.ignore-blocklist": True,
    "dom.max_script_run_time": 0,
    "app.normandy.enabled": False,
    "app.update.enabled": False,
    "browser.aboutwelcome.enabled": False,
    "browser.newtab.preload": False,
    "browser.newtabpage.enabled": False,
    "browser.pagethumbnails.capturing_disabled": True,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.search.update": False,
    "browser.sessionstore.resume_from_crash": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "browser.startup.page": 0,
    "browser.topsites.contile.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "dom.ipc.processPrelaunch.enabled": False,
    "extensions.getAddons.cache.enabled": False,
    "extensions.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.dns.disabled": True,
    "network.http.response.timeout": 0,
    "network.proxy.type": 0,
    "toolkit.telemetry.enabled": False,
}


@dataclasses.dataclass(frozen=True)
class Browser:
    """A browser: its kind, and the path of its program."""

    kind: BrowserKind
    program: str

    @property
    def settings(self) -> dict[str, str]:
        """The flags, preferences and environment variables of the browser by name, for the record
        of the results, because they may change the cost.
        """
        # A flag without a value is recorded as "set".
        settings = {name: value or "set" for name, value in _flags(self.kind).items()}
        if self.kind == "firefox":
            for name, preference in FIREFOX_PREFERENCES.items():
                # As Firefox writes values, such as true, but text without quotes.
                settings[name] = json.dumps(preference).strip('"')
        return {**settings, **self.environment}

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables to add when the browser starts, by name."""
        return FIREFOX_ENVIRONMENT if self.kind == "firefox" else {}

    def command(self, profile: Path, url: str) -> list[str]:
        """The command line that opens the URL with this (empty) profile. Firefox takes preferences
        from a file in the profile alone, so this writes the file too.
        """
        flags = []
        for name, value in _flags(self.kind).items():
            flags.append(f"{name}={value}" if value else name)
        if self.kind == "chromium":
            return [self.program, *flags, f"--user-data-dir={profile}", url]
        # Lines of JavaScript, in the file that Firefox reads when it starts with the profile.
        lines = []
        for name, preference in FIREFOX_PREFERENCES.items():
            lines.append(f"user_pref({json.dumps(name)}, {json.dumps(preference)});\n")
        (profile / "user.js").write_text("".join(lines), encoding="utf-8")
        return [self.program, *flags, "--profile", str(profile), url]

    def version(self) -> str:
        """What the program prints for ``--version``; '' if it prints nothing. On Windows it is not
        asked, and this is ''. For '' the record has the version that the page tells.
        """
        if sys.platform == "win32":
            return ""
        try:
            done = subprocess.run(
                [self.program, "--version"], capture_output=True, text=True, timeout=20, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return " ".join(done.stdout.split())[:100]


def choose_browser(browser: str) -> str:
    """The name of the stack that measures this browser, from the option ``--browser``: the name of
    a kind, ``chromium`` or ``firefox``, or a program of one of these kinds.

    For a program, sets an environment variable, from which the worker processes know the program.
    Raises ``UsageError`` if there is none.
    """
    if browser in _NAMES:
        return browser
    # ``_NAMES``: the kinds, which are also the names of the stacks.
    if shutil.which(browser) is None:
        raise unknown_name("browser or program", browser, _NAMES)
    os.environ[BROWSER] = browser
    return kind_of(browser)


def find_browser(kind: BrowserKind) -> Browser:
    """The browser of this kind that is measured: the program that ``OVERHEAD_BROWSER`` names if it
    is of this kind, else the first one that is installed. Raises ``Unavailable`` if there is none.
    """
    named = os.environ.get(BROWSER, "")
    if named:
        program = shutil.which(named)
        if program is None:
            raise Unavailable(
                because("variable-names-no-program", variable=BROWSER, named=named),
                because("set-variable-to-browser", variable=BROWSER),
            )
        if kind_of(program) == kind:
            return Browser(kind, program)
    # Also if the named program is of the other kind: that stack measures it.
    for program in installed_programs(kind):
        return Browser(kind, program)  # the first one
    raise Unavailable(
        because("no-browser-found", browser=kind.title()),
        because("install-browser", variable=BROWSER),
    )


def installed_programs(kind: BrowserKind, platform: str = sys.platform) -> list[str]:
    """Paths of browsers of this kind in PATH and in the usual folders of the platform, the
    preferred ones first.
    """
    programs = []
    # ``_NAMES``: the names of the programs of a kind, such as google-chrome, the preferred ones
    # first.
    for name in _NAMES[kind]:
        on_path = shutil.which(name)
        if on_path:
            programs.append(on_path)
    places: list[Path] = []
    if platform == "darwin":
        places = _mac_places(kind)
    elif platform == "win32":
        places = _windows_places(kind)
    programs += [str(place) for place in places if place.is_file()]
    return programs


def _mac_places(kind: BrowserKind) -> list[Path]:
    """Where the programs of browsers of this kind may be on a Mac. The program in Firefox's app is
    written in lower case.
    """
    places = []
    for app in _MAC[kind]:
        # For all users of the machine, and for this one.
        for root in (Path("/Applications"), Path.home() / "Applications"):
            places.append(root / f"{app}.app/Contents/MacOS/{app}")
    if kind == "firefox":
        places += [place.with_name(place.name.lower()) for place in places]
    return places


def _windows_places(kind: BrowserKind) -> list[Path]:
    """Where the programs of browsers of this kind may be on Windows: each path of ``_WINDOWS``
    below each folder for programs that the environment names.
    """
    roots = [Path(os.environ[name]) for name in _WINDOWS_ROOTS if os.environ.get(name)]
    places = []
    for program in _WINDOWS[kind]:
        for root in roots:
            places.append(root.joinpath(*program.split("\\")))
    return places


def kind_of(program: str) -> BrowserKind:
    """The kind of a browser, from the name of its program: ``firefox`` if that contains it, else
    ``chromium``.
    """
    return "firefox" if "firefox" in Path(program).name.lower() else "chromium"


def split_flags(text: str, platform: str) -> list[str]:
    """The words of a text as a shell divides them: at spaces outside of quotes. On Windows a
    backslash belongs to a path and escapes nothing.
    """
    # ``posix``: quotes are removed from the words.
    words = shlex.shlex(text, posix=True, punctuation_chars=False)
    words.whitespace_split = True
    words.commenters = ""  # a "#" is part of a word
    if platform == "win32":
        words.escape = ""
    return list(words)


def _flags(kind: BrowserKind) -> dict[str, str]:
    """The values of the flags by name, '' for a flag without one: the default flags, changed by the
    environment variable ``FLAGS``, whose words add a flag, or remove it after ``!``.
    """
    flags = dict(CHROMIUM_FLAGS if kind == "chromium" else FIREFOX_FLAGS)
    if kind == "chromium" and sys.platform.startswith("linux") and os.geteuid() == 0:
        flags["--no-sandbox"] = ""  # as root, Chromium does not start with its sandbox
    # As a shell divides the text into words.
    for word in split_flags(os.environ.get(FLAGS, ""), sys.platform):
        name, _, value = word.partition("=")
        if name.startswith("!"):
            flags.pop(name[1:], None)
        else:
            flags[name] = value
    return flags
