"""What a run leaves out, where it stops, and what it lacks."""

TEMPLATES = {
    "died-while": "{why} (while {doing})",
    "worker-gave-no-answer": "the process gave no answer",
    "no-case-opened": "no case could be started",
    "too-many-slow-cases": (
        "this stack takes seconds for each case, so this profile measures only {most}; a larger --profile or a "
        "--pattern measures it"
    ),
    "over-budget": (
        "too long for this profile: {sampling_s:.1f} s in each of {processes} processes, and {budget_s:.0f} s for the "
        "whole run; a larger --profile, or -p and --pattern, measure it"
    ),
    "software-beside-gpu": "a software adapter, on a machine with a GPU; --software measures it too",
    "no-gpu-beside-gpu": "not a GPU, and this stack has one here; --software measures it too",
    "measured-through-vulkan": "the same adapter is measured through Vulkan; --profile thorough measures both",
    "process-would-exceed-wall": (
        "only {measured} of {processes} processes were measured, because one more would end after the time limit of "
        "{limit_s:.0f} s"
    ),
    "wall-reached": (
        "the time limit of {limit_s:.0f} s is reached, so the rest of process {process} of {processes} is not measured"
    ),
    "forming-the-figures": "measured; the figures are formed",
    "stack-sets-variable": "{target}: this stack sets {variable} itself, so --env does not change it",
    "nothing-to-measure": "nothing to measure: {why}",
    "interrupted-run": 'interrupted; everything measured is in {files}; to see it: print(overhead.load("{first}"))',
    "no-case-matches": "no case matches these options",
}
