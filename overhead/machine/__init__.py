"""The machine: identity, software versions, present state, possible disturbances, and redaction of
names.
"""

from overhead.machine.identity import identity, versions
from overhead.machine.redaction import Owner, hide_secrets, redact, redact_reason, redacted
from overhead.machine.state import volatile

__all__ = [
    "Owner",
    "hide_secrets",
    "identity",
    "redact",
    "redact_reason",
    "redacted",
    "versions",
    "volatile",
]
