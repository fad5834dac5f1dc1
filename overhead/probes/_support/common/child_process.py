"""Requests to a child process and its answers, one JSON object a line.

``Child`` is the parent's side; the module that the child runs calls ``serve``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from overhead.process import LimitExceeded, SupervisedProcess, input_lines

_MEMORY_POLL_S = 0.1
_DEATH_S = 10.0
Answer = dict[str, Any]


class Ended(Exception):
    """The child is gone; ``why``: ``time limit``, ``memory limit``, or ``died`` with exit code and last words."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Child:
    """A running child that answers requests. ``module`` is what it runs, ``memory_bytes`` what it may hold."""

    def __init__(self, module: str, environment: Mapping[str, str], memory_bytes: int) -> None:
        self._process = SupervisedProcess(
            [sys.executable, "-m", module, str(os.getpid())],
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
        """The most resident memory that the child and its descendants were seen to hold."""
        return self._process.peak_bytes

    def ask(self, do: str, limit_s: float = float("inf"), **fields: Any) -> Answer:
        """The child's answer. Raises ``Ended`` if the child died, or was killed as it exceeded a limit."""
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
        """Kill the child and the processes that it started. Harmless when called again."""
        self._process.end()


def serve(answers: Callable[[Answer], Answer]) -> None:
    """The child's side: answer every request until the parent ends.

    What libraries print goes to standard error. Import nothing that takes long before this call.
    """
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in input_lines(int(sys.argv[1])):
        out.write(json.dumps(answers(json.loads(line))) + "\n")
        out.flush()
