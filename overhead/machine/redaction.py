"""Remove what identifies the owner of the machine from texts: host, user, absolute paths. Hide
secret values.
"""

from __future__ import annotations

import functools
import getpass
import hashlib
import re
import socket
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from overhead.results import JournalEntry, LongText, Reason, Scalar, Why

L = TypeVar("L", bound=JournalEntry)
# Fields whose text comes from outside the suite. Names of stacks, cases and targets are not
# redacted: a host with the name "torch" must not change them.
_FREE_TEXT = frozenset({"reason", "mend", "environment", "window", "driver", "rule"})

# Default names of systems and images identify no owner, and a reason may contain them as ordinary
# words.
_DEFAULT_NAMES = frozenset(
    {
        "",
        "admin",
        "debian",
        "host",
        "localhost",
        "nvidia",
        "pi",
        "root",
        "runner",
        "ubuntu",
        "user",
        "vm",
    }
)
_START = (
    # /x, ~/x, file:///x, -I/x; not a/b, not https://x
    r"(?:(?:(?<![\w./~…-])|(?<=\s-[ILF]))(?:file://)?(?:~[\\/]|/)(?!/)"
    r"|(?<!\w)(?:file:///)?[A-Za-z]:[\\/](?!/)"  # C:\x, C:/x
    r"|(?<![\w\\])\\\\(?=\w))"  # \\server\x
)
_QUOTED = re.compile(rf"(['\"]){_START}[^'\"\n]*\1")
_BARE = re.compile(rf"{_START}[\w.~+@$%-][^\s:;,'\"<>|()\[\]]*")

_SECRET_NAME = re.compile(
    r"SECRET|PASSW|PASSPHRASE|CREDENTIAL|COOKIE|SESSION|BEARER|TOKEN(?!IZ)|AUTH(?!OR(?!I))"
    # TOKENIZERS_PARALLELISM and AUTHOR hold no secret
    r"|(?:KEY|PASS|PWD|CRED|JWT)S?\d*(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(
    r"\b(?:sk|rk|pk|ghp|gho|ghs|hf|glpat|xox[a-z]|github_pat)[-_][\w-]{16,}|\bAIza[\w-]{8,}|\beyJ[\w.-]{8,}"
    r"|\b[0-9a-fA-F]{32,}\b"
    r"|\b(?=[A-Za-z0-9]*[a-z])(?=[A-Za-z0-9]*[A-Z])(?=[A-Za-z0-9]*\d)[A-Za-z0-9]{20,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{8,}"
    r"|(?i:(?<=bearer )|(?<=basic ))\S+"
    r"|(?<=://)[^/\s@]+(?=@)"
)
_PAIR = re.compile(r"([\w-]+)=([^\s&;,]+)")


@dataclass(frozen=True)
class Owner:
    """The words that identify the owner of a machine, which must not get into published files:
    names of the host, the user's name, and the home folder.
    """

    hosts: frozenset[str]
    user: str
    home: str


@functools.cache
def owner() -> Owner:
    """The words that identify the owner of this machine. The name of a host that is a default of
    some system, such as ``localhost``, identifies nobody and is left out.
    """
    try:
        user = getpass.getuser()
    # A process in a container may run under a number that has no name.
    except (KeyError, OSError, ImportError):
        user = ""
    host = socket.gethostname()
    without_domain = host.partition(".")[0]
    hosts = frozenset({host, without_domain}) - _DEFAULT_NAMES
    return Owner(hosts, user, home=str(Path("~").expanduser()))


def redact(text: str, of: Owner | None = None) -> str:
    """The text without what identifies the owner of a machine: ``<host>`` and ``<user>`` stand for
    the names, and of an absolute path only the last part remains (``…/lib.so``).

    Redacting twice gives the same. ``of``: whose names; None for the owner of this machine.
    """
    of = of or owner()
    # File systems of Windows and macOS ignore the case of letters, and programs there print a path
    # in either.
    case = re.IGNORECASE if re.match(r"[A-Za-z]:|/Users/", of.home) else re.NOFLAG
    # The home folder first, in each way to write its path (``_written_homes``): the user's name,
    # which is replaced at last, may be a part of it.
    for home in _written_homes(of.home):
        text = re.sub(rf"{re.escape(home)}(?![\w.-])", "~", text, flags=case)
    # Absolute paths in quotes, which may contain spaces, then those without (``_BARE``).
    text = _QUOTED.sub(_last_part_in_quotes, text)
    text = _BARE.sub(lambda path: _last_part(path[0]), text)
    text = _without_names(text, of.hosts, "<host>", case)
    return _without_names(text, {of.user}, "<user>", case)


def _written_homes(home: str) -> set[str]:
    """The home folder in the ways that programs print it: with either slash, and with backslashes
    doubled, as in JSON. Without those that would replace ordinary text.
    """
    written = {home, home.replace("\\", "/"), home.replace("\\", "\\\\")}
    return written - {"", "/", "~"}


def _without_names(text: str, names: Set[str], stand_in: str, case: re.RegexFlag) -> str:
    """The text with ``stand_in`` for each of these names, the longest first, because a name may be
    a part of another one.
    """
    for name in sorted(names - _DEFAULT_NAMES, key=len, reverse=True):
        text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", stand_in, text, flags=case)
    return text


def redact_reason(why: Why, of: Owner | None = None) -> Why:
    """The reason with its texts redacted."""
    if isinstance(why, str):
        return redact(why, of)
    values = {name: _redact_value(value, of) for name, value in why.values.items()}
    also = [redact_reason(reason, of) for reason in why.also]
    return Reason(why.code, values, also)


def _redact_value(
    value: Scalar | LongText | Reason, of: Owner | None
) -> Scalar | LongText | Reason:
    return redact_reason(value, of) if isinstance(value, str | Reason) else value


def hide_secrets(name: str, value: str) -> str:
    """The value of an environment variable without passwords and keys. All of it is hidden if the
    name of the variable is that of a secret, such as ``API_KEY``.

    A secret becomes ``<hidden 3fa9>``. The digits are 16 bits of its SHA-256: they differ for
    different secrets, but do not tell the secret.
    """
    if value and _SECRET_NAME.search(name):
        return _hidden(value)
    # Also what looks like a key or a password inside the value, and pairs such as ``token=abc``.
    value = _SECRET_VALUE.sub(lambda secret: _hidden(secret[0]), value)
    return _PAIR.sub(_pair_without_secret, value)


def _pair_without_secret(pair: re.Match[str]) -> str:
    """A pair such as ``token=abc``, with its value hidden if the name is that of a secret."""
    name, value = pair[1], pair[2]
    return f"{name}={_hidden(value)}" if _SECRET_NAME.search(name) else pair[0]


def _hidden(secret: str) -> str:
    digits = hashlib.sha256(secret.encode()).hexdigest()[:4]
    return f"<hidden {digits}>"


def _last_part(path: str) -> str:
    """What remains of an absolute path: ``…/`` and its last part."""
    parts = re.split(r"[/\\]", path.rstrip("/\\"))
    return f"…/{parts[-1]}"


def _last_part_in_quotes(quoted: re.Match[str]) -> str:
    """What remains of an absolute path in quotes, which may contain spaces."""
    mark = quoted[1]
    path = quoted[0][1:-1]
    return f"{mark}{_last_part(path)}{mark}"


def redacted(line: L, of: Owner | None = None) -> L:
    """The journal line with all free-text fields redacted. The other fields are unchanged."""
    fields = _redact_fields(msgspec.to_builtins(line), of, free=False)
    return msgspec.convert(fields, type(line))


def _is_free(name: str, free: bool) -> bool:
    """Whether a field is free text: one of those named, or a value of a reason; not the reason's
    code.
    """
    return name in _FREE_TEXT or (free and name != "code")


def _redact_fields(value: Any, of: Owner | None, free: bool) -> Any:
    """A value of a journal line (the record of a run) without what identifies the owner, also
    inside of dicts and lists. Only free texts, which come from outside of the suite, are changed.

    ``free``: whether a text at this place is free.
    """
    match value:
        case str():
            return redact(value, of) if free else value
        case dict():
            redacted_fields = {}
            for name, inner in value.items():
                # The name of a field tells whether its texts are free.
                redacted_fields[name] = _redact_fields(inner, of, _is_free(name, free))
            return redacted_fields
        case list():
            return [_redact_fields(inner, of, free) for inner in value]
        case _:
            return value
