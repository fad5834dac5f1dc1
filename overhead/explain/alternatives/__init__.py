"""What would change a step: one file an alternative, each measured against the step as it is."""

from overhead.explain.alternatives.base import StepChange
from overhead.explain.alternatives.compiled import CompiledStep
from overhead.explain.alternatives.cuda_graph import CapturedStep
from overhead.explain.alternatives.without_synchronisations import WithoutSynchronisations

ALTERNATIVES: dict[str, StepChange] = {
    each.name: each
    for each in (CapturedStep(), CompiledStep("default"), CompiledStep("reduce-overhead"), WithoutSynchronisations())
}
"""By name, in the order in which they are tried and shown."""
