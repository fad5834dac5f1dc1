"""What would change a step: one file an alternative, each measured against the step as it is."""

from overhead.explain.alternatives.base import Alternative
from overhead.explain.alternatives.compiled import Compiled
from overhead.explain.alternatives.cuda_graph import CudaGraph
from overhead.explain.alternatives.without_synchronisations import WithoutSynchronisations

ALTERNATIVES: dict[str, Alternative] = {
    each.name: each
    for each in (CudaGraph(), Compiled("default"), Compiled("reduce-overhead"), WithoutSynchronisations())
}
"""By name, in the order in which they are tried and shown."""
