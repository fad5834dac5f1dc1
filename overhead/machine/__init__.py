"""The machine: its identity and software, its present state, what would disturb a measurement, and redaction."""

from overhead.machine.identity import identity, versions
from overhead.machine.redaction import Owner, redact, redacted
from overhead.machine.state import volatile

__all__ = ["Owner", "identity", "redact", "redacted", "versions", "volatile"]
