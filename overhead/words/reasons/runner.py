"""What a run leaves out, where it stops, and what it lacks."""

TEMPLATES = {
    "died-while": "{why} (while {doing})",
    "worker-gave-no-answer": "the worker gave no answer",
    "no-case-opened": "no case could be opened",
    "too-many-slow-cases": (
        "its stack takes seconds a case, so this profile has {most} of them; a larger profile or a choice of "
        "patterns takes it"
    ),
    "over-budget": (
        "{sampling_s:.1f} s of sampling in {processes} processes do not fit the budget of {budget_s:.0f} s for "
        "the whole run; a larger profile or a choice of stacks and patterns takes it"
    ),
    "software-beside-gpu": "a software adapter, and there is a GPU; --software measures it too",
    "no-gpu-beside-gpu": "no GPU, and its stack has one; --software measures it too",
    "measured-through-vulkan": "the same adapter is measured through Vulkan; --profile thorough takes both",
    "process-would-exceed-wall": (
        "{measured} of {processes} processes are measured; one more would end after the wall limit of {limit_s:.0f} s"
    ),
    "wall-reached": (
        "the wall limit of {limit_s:.0f} s is reached: the rest of process {process} of {processes} is not measured"
    ),
    "forming-the-figures": "measured; the figures are formed",
    "stack-sets-variable": "{target}: the stack sets {variable} itself, so --env does not change it there",
    "nothing-to-measure": "nothing to measure: {why}",
    "no-case-matches": "no case matches the options given",
}
