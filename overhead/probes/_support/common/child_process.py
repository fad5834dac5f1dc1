"""Send requests to a child process and receive its answers: one JSON object per line.

The parent uses ``Child``. The module that the child runs calls ``serve``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from overhead.child import LimitExceeded, SupervisedProcess, input_lines

_MEMORY_POLL_S = 0.1
_DEATH_S = 10.0
Answer = dict[str, Any]


class Ended(Exception):
    """The child has ended. ``why``: ``time limit``, ``memory limit``, or ``died`` with exit code and last output."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Child:
    """A running child process that answers requests. It runs ``module``; ``memory_bytes`` limits its memory."""

    def __init__(self, module: str, environment: Mapping[str, str], memory_bytes: int) -> None:
        self._process = SupervisedProcess(
            [sys.executable, "-m", module],
            environment,
            memory_bytes=memory_bytes,
            poll_s=_MEMORY_POLL_S,
            count_descendants=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def peak_bytes(self) -> int:
        """The highest resident memory of the child and its descendants seen so far."""
        return self._process.peak_bytes

    def ask(self, do: str, limit_s: float = float("inf"), **fields: Any) -> Answer:
        """Send a request and return the answer. Raises ``Ended`` if the child died or was killed at a limit."""
        self._process.send(json.dumps({"do": do, **fields}).encode() + b"\n")
        try:
            line = self._process.receive(limit_s)
        except LimitExceeded as exceeded:
            raise Ended(str(exceeded)) from None
        if not line:
            code = self._process.exit_code(_DEATH_S)
            raise Ended(f"died with exit code {code}{self._process.last_words()}")
        answer: Answer = json.loads(line)
        return answer

    def end(self) -> None:
        """Kill the child and the processes that it started. A second call does nothing."""
        self._process.end()


def serve(answers: Callable[[Answer], Answer]) -> None:
    """Answer every request until the parent ends; called in the child.

    Output that libraries print goes to standard error. Do slow imports only after this call.
    """
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in input_lines():
        out.write(json.dumps(answers(json.loads(line))) + "\n")
        out.flush()
