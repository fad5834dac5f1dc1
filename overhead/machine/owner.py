"""Taking out of a text what says whose machine it came from: host, user, home and other absolute paths."""

from __future__ import annotations

import functools
import getpass
import re
import socket
from dataclasses import dataclass
from pathlib import Path

# Names that systems and images come with say nothing of an owner, and may be words of a reason.
_TELL_NOTHING = frozenset(
    {"", "admin", "debian", "host", "localhost", "nvidia", "pi", "root", "runner", "ubuntu", "user", "vm"}
)
_START = (
    r"(?:(?:(?<![\w./~…-])|(?<=\s-[ILF]))(?:file://)?(?:~[\\/]|/)(?!/)"  # /x, ~/x, file:///x, -I/x; not a/b, not https://x
    r"|(?<!\w)(?:file:///)?[A-Za-z]:[\\/](?!/)"  # C:\x, C:/x
    r"|(?<![\w\\])\\\\(?=\w))"  # \\server\x
)
_QUOTED = re.compile(rf"(['\"]){_START}[^'\"\n]*\1")
_BARE = re.compile(rf"{_START}[\w.~+@$%-][^\s:;,'\"<>|()\[\]]*")


@dataclass(frozen=True)
class Owner:
    """The words that name a machine's owner."""

    hosts: frozenset[str]
    user: str
    home: str


@functools.cache
def owner() -> Owner:
    """The owner of this machine."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):
        user = ""
    host = socket.gethostname()
    return Owner(frozenset({host, host.partition(".")[0]}) - _TELL_NOTHING, user, str(Path("~").expanduser()))


def redact(text: str, whose: Owner | None = None) -> str:
    """The text without host and user name; an absolute path keeps its last part alone (``…/lib.so``). Idempotent."""
    whose = whose or owner()
    for home in {whose.home, whose.home.replace("\\", "/"), whose.home.replace("\\", "\\\\")} - {"", "/", "~"}:
        text = re.sub(rf"{re.escape(home)}(?![\w.-])", "~", text)
    text = _QUOTED.sub(lambda match: match[1] + _last_part(match[0][1:-1]) + match[1], text)
    text = _BARE.sub(lambda match: _last_part(match[0]), text)
    for words, stand_in in ((whose.hosts, "<host>"), ({whose.user}, "<user>")):
        for word in sorted(set(words) - _TELL_NOTHING, key=len, reverse=True):
            text = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])", stand_in, text)
    return text


def _last_part(path: str) -> str:
    return "…/" + re.split(r"[/\\]", path.rstrip("/\\"))[-1]
