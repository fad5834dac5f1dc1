"""What a run leaves out, where it stops, and what it lacks."""

TEMPLATES = {
    "died-while": "{why} (while {doing})",
    "worker-gave-no-answer": "the process gave no answer",
    "no-case-opened": "no case could be started",
    "too-many-slow-cases": (
        "this stack takes seconds for each case, so this profile measures only {most} cases of the"
        " stack; a larger --profile or --pattern measures more"
    ),
    "over-budget": (
        "these cases need {sampling_s:.1f} s in each of {processes} processes, and this profile has"
        " {budget_s:.0f} s for the whole run; a larger --profile, or -p and --pattern, measure them"
    ),
    "software-beside-gpu": (
        "a software adapter, on a machine with a GPU; --software measures this adapter too"
    ),
    "no-gpu-beside-gpu": (
        "not a GPU, and this stack has a GPU here; --software measures this device too"
    ),
    "measured-through-vulkan": (
        "the same adapter is measured through Vulkan; --profile thorough measures both"
    ),
    "process-would-exceed-wall": (
        "only {measured} of {processes} processes were measured, because one more would end after"
        " the time limit of {limit_s:.0f} s"
    ),
    "wall-reached": (
        "the time limit of {limit_s:.0f} s is reached, so the rest of process {process} of"
        " {processes} is not measured"
    ),
    "forming-the-figures": "measured; the figures are formed",
    "stack-sets-variable": (
        "{target}: this stack sets {variable} itself, so --env does not change it"
    ),
    "nothing-to-measure": "nothing to measure: {why}",
    "interrupted-run": (
        'interrupted; everything measured is in {files}; to see it: print(overhead.load("{first}"))'
    ),
    "no-case-matches": "no case matches these options",
}
