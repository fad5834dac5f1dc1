"""The decoders as work that stacks define themselves: it takes gigabytes, so it must be named."""

from __future__ import annotations

from overhead.decode.decoders import DECODERS, requirements, weight_bytes
from overhead.workloads import StackWork, register_stack_work

for _name in DECODERS:
    register_stack_work(StackWork(_name, "named", weight_bytes(_name), requirements(_name)))
