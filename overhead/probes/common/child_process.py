"""Send requests to a child process and receive its answers, as dictionaries.

The parent uses ``Child``. The module that the child runs calls ``serve``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from overhead import child

Answer = dict[str, Any]


class Ended(Exception):
    """The child has ended. ``why``: ``time limit``, ``memory limit``, or ``died`` with exit code and last output."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Child(child.ChildProcess[Answer]):
    """A running child process that answers requests. It runs ``module``; ``memory_bytes`` limits its memory."""

    def __init__(self, module: str, environment: Mapping[str, str], memory_bytes: int) -> None:
        limits = child.ChildLimits(memory_bytes=memory_bytes, count_descendants=True)
        super().__init__(module, None, msgspec.json.Decoder(Answer).decode, limits, environment)

    def ask(self, do: str, limit_s: float = float("inf"), **fields: Any) -> Answer:
        """Send a request and return the answer. Raises ``Ended`` if the child died or was killed at a limit."""
        self.send({"do": do, **fields})
        try:
            return self.receive(limit_s)
        except child.ChildEnded as ended:
            raise Ended(f"{ended.why} limit" if ended.why in ("time", "memory") else f"died: {ended}") from None


def serve(answers: Callable[[Answer], Answer]) -> None:
    """Answer every request until the parent ends; called in the child. Do slow imports only after this call."""
    child.serve(Answer, lambda request, send: send(answers(request)))
