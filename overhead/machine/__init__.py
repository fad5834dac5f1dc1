"""The machine: identity, software versions, present state, possible disturbances, and redaction of names."""

from overhead.machine.identity import identity, versions
from overhead.machine.redaction import Owner, redact, redacted
from overhead.machine.state import volatile

__all__ = ["Owner", "identity", "redact", "redacted", "versions", "volatile"]
