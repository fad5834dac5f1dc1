"""Redaction removes host, user and home folder from texts, but changes no names of stacks, cases or
targets.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from overhead.machine import Owner, hide_secrets, redact, redact_reason, redacted
from overhead.machine.redaction import owner
from overhead.results import Case, FailedEntry, PlannedEntry, Reason, Target, because

DAWN = Owner(hosts=frozenset({"dawn"}), user="", home="")


def test_the_home_folder_is_removed_from_free_text() -> None:
    line = FailedEntry(
        target="t",
        case="c",
        worker="w",
        process=0,
        status="failed",
        reason=f"no {Path.home()}/x/y.so",
    )
    assert str(Path.home()) not in str(redacted(line).reason)
    quoted = because("with-text", why="x", text=f"no {Path.home()}/x/y.so")
    assert str(Path.home()) not in str(redact_reason(quoted))


def test_a_host_with_the_name_of_a_stack_does_not_change_stack_names() -> None:
    target = Target(
        stack="dawn", api="Null", adapter="dawn", driver="dawn", environment={"dawn": "dawn"}
    )
    clean = redacted(PlannedEntry(worker="dawn", target=target, case=Case(pattern="fused")), DAWN)
    assert (clean.worker, clean.target.stack, clean.target.adapter) == ("dawn", "dawn", "dawn")
    assert (clean.target.driver, clean.target.environment) == ("<host>", {"dawn": "<host>"})


@pytest.mark.parametrize(
    "name",
    [
        "MY_API_TOKEN",
        "api_key",
        "APIKEY2",
        "AWS_SECRET_ACCESS_KEY",
        "PGPASSWORD",
        "DB_PASSWD",
        "SSH_PASSPHRASE",
        "AUTH",
        "X_AUTHORIZATION",
        "SESSION_ID",
        "COOKIES",
        "GOOGLE_CREDENTIALS_FILE",
        "KEYS",
        "DB_PASS",
    ],
)
def test_a_variable_whose_name_is_that_of_a_secret_has_its_value_hidden(name: str) -> None:
    hidden = hide_secrets(name, "open sesame")
    assert "open" not in hidden
    assert hidden == hide_secrets(name, "open sesame") != hide_secrets(name, "close sesame")


@pytest.mark.parametrize(
    ("value", "secret", "left"),
    [
        ("https://joe:sesame@host/x", "sesame", "host/x"),
        ("https://host/x?token=sesame&size=2", "sesame", "size=2"),
        ("host=a;password=sesame", "sesame", "host=a"),
        ("Bearer sesame", "sesame", "Bearer"),
        ("ghp_0123456789abcdefghij0123456789abcdef", "0123456789abcdefghij", ""),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.c2ln", "eyJhbGci", ""),
        ("a 0123456789abcdef0123456789abcdef", "0123456789abcdef", "a "),
        ("wJalrXUtnFEMI7K7MDENGbPxRfiCYEXAMPLEKEY0", "wJalrXUtnFEMI", ""),
    ],
)
def test_a_part_that_looks_like_a_secret_is_hidden_in_any_value(
    value: str, secret: str, left: str
) -> None:
    hidden = hide_secrets("A", value)
    assert secret not in hidden
    assert left in hidden


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("XLA_FLAGS", "--xla_force_host_platform_device_count=8 --xla_gpu_autotune_level=4"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True,max_split_size_mb:128"),
        ("CUDA_VISIBLE_DEVICES", "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"),
        ("VK_ICD_FILENAMES", "/usr/share/vulkan/icd.d/nvidia_icd.x86_64.json"),
        ("AUTHOR", "me"),
        ("A_KEY", ""),
    ],
)
def test_values_without_a_secret_are_not_changed(name: str, value: str) -> None:
    assert hide_secrets(name, value) == value


def test_redaction_works_for_a_user_without_an_account(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", nobody)
    assert owner.__wrapped__().user == ""


JANE = Owner(frozenset({"falcon.lan", "falcon"}), "jane", "/home/jane")
JANE_ON_WINDOWS = Owner(frozenset({"FALCON"}), "Jane Doe", "C:\\Users\\Jane Doe")


@pytest.mark.parametrize(
    ("whose", "text", "expected"),
    [
        (
            JANE,
            "cannot open /home/jane/work/lib.so: no such file",
            "cannot open …/lib.so: no such file",
        ),
        (JANE, 'File "/home/jane/a b/x.py", line 3', 'File "…/x.py", line 3'),
        (
            JANE,
            "jane@falcon.lan said falcon-like things to janet",
            "<user>@<host> said falcon-like things to janet",
        ),
        (JANE, "/opt/one/a.json:/srv/two/b.json", "…/a.json:…/b.json"),
        (
            JANE,
            "file:///home/jane/x.html and https://example.org/a/b",
            "…/x.html and https://example.org/a/b",
        ),
        (JANE, "gcc -I/opt/secret/inc -o ~/out/x /home/jane", "gcc -I…/inc -o …/x ~"),
        (
            JANE,
            "NVIDIA H100/PCIe/SSE2, 3 us/op and/or 1 / 2, N/A",
            "NVIDIA H100/PCIe/SSE2, 3 us/op and/or 1 / 2, N/A",
        ),
        (JANE, "(/var/lib/thing/)", "(…/thing)"),
        (JANE, "/home/janet/x", "…/x"),
        (JANE, "can't read '/mnt/her disk/model file'", "can't read '…/model file'"),
        (JANE_ON_WINDOWS, r"C:\Users\Jane Doe\AppData\x.dll failed", "…/x.dll failed"),
        (JANE_ON_WINDOWS, "C:/Users/Jane Doe/x.dll failed on FALCON", "…/x.dll failed on <host>"),
        (JANE_ON_WINDOWS, r"'D:\Program Files\Thing\y.dll'", "'…/y.dll'"),
        (JANE_ON_WINDOWS, r"\\server\share\z.dll", "…/z.dll"),
        (JANE_ON_WINDOWS, "user Jane Doe", "user <user>"),
        (
            JANE_ON_WINDOWS,
            r"c:\users\JANE DOE\a.dll, jane doe on falcon",
            "…/a.dll, <user> on <host>",
        ),
        (JANE, "Jane and FALCON", "Jane and FALCON"),
        (
            Owner(frozenset({"localhost"}), "root", "/root"),
            "root on localhost",
            "root on localhost",
        ),
    ],
)
def test_redaction_removes_owner_and_absolute_paths(whose: Owner, text: str, expected: str) -> None:
    """A default name of a user or a host stays."""
    assert redact(text, whose) == expected
    assert redact(expected, whose) == expected


def test_redaction_removes_the_owner_of_this_machine() -> None:
    whose = owner()
    text = f"{' '.join(whose.hosts)} {whose.home}/.cache/x {whose.user} /tmp/y"
    left = redact(text)
    assert whose.home not in left
    assert not any(host in left.split() for host in whose.hosts)


def test_redaction_changes_the_texts_of_a_reason_and_not_its_code() -> None:
    inner = Reason("falcon", {"file": "/home/jane/x.py", "times": 3})
    reason = Reason("jane", {"why": inner, "user": "jane"}, ["no /home/jane/y.so"])
    clean = Reason("falcon", {"file": "…/x.py", "times": 3})
    assert redact_reason(reason, JANE) == Reason(
        "jane", {"why": clean, "user": "<user>"}, ["no …/y.so"]
    )
