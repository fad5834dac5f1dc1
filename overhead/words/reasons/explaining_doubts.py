"""The sentences of what a measured step, and a recording of one, could not tell."""

from __future__ import annotations

TEMPLATES = {
    # What a step reaches, and what it computed.
    "reaches-too-many-objects": (
        "the step reaches over {most:,} objects: this one and later ones are not compared"
    ),
    "part-unreadable": "cannot be read: {error}",
    "set-without-order": "cannot be compared: a set has no order",
    "too-many-parts": "this object has over {most:,} parts",
    "part-too-large": "this array is too large to compare",
    "part-of-unknown-type": "the type {type} cannot be compared",
    "part-holds-other-things": (
        "cannot be compared: {type} holds other things than numbers and text"
    ),
    "not-reached-by-alternative": "your alternative does not reach this array",
    "alternative-lacks-changed-array": (
        "your alternative has no reference to an array that the step changes"
    ),
    "value-only-of-step": "{name}: {value} in the step and nothing in the alternative",
    "value-only-of-alternative": "{name}: nothing in the step and {value} in the alternative",
    "values-differ": "{name}: {first} in the step and {second} in the alternative",
    "values-differ-by-share": (
        "{name}: {first} in the step and {second} in the alternative (differs by {share:.1e} of the"
        " largest value)"
    ),
    "no-values-to-compare": "there are no values to compare",
    "step-without-results": (
        "the step returns nothing and changes no array: there are no results to compare"
    ),
    "results-not-finite": "the results are not finite, so they cannot be compared",
    "step-does-not-vary": (
        "each step gives the same results, so overhead cannot see whether the alternative computes"
        " them anew"
    ),
    "nothing-varied": (
        "no input could be changed, so overhead cannot see whether the alternative computes its"
        " results anew"
    ),
    "alternative-does-not-vary-alike": (
        "when the inputs change, the results of the step change, and those of your alternative do"
        " not, or not in the same way: your alternative may return earlier results, or use its own"
        " copies of the inputs"
    ),
    "alternative-stops-working": (
        "after more steps, your alternative gives results that differ from those of the step"
    ),
    "parts-not-compared": "not compared: {parts}",
    "part-not-compared": "{name} ({why})",
    "step-not-compared": "the step ({why})",
    "more-not-compared": "and {more:,} more",
    "step-cannot-be-repeated": "the step cannot be repeated: {why}",
    "step-cannot-be-repeated-at": "the step cannot be repeated: {why} ({line})",
    "step-not-repeatable": "the step itself gives different results in two processes",
    # Why an alternative does not apply, and what its times do not tell.
    "step-without-torch": "the step does not use PyTorch",
    "alternative-needs-cuda-device": "no CUDA device",
    "step-without-torch-on-cuda": "the step does not use PyTorch on CUDA",
    "same-as-default-mode-on-cpu": "on the CPU this mode is the same as the default mode",
    "reads-differ-between-steps": (
        "RuntimeError: the step reads more values from the device in some steps than in others"
    ),
    "step-not-capturable": (
        "cannot be captured as a CUDA graph, because state on the CPU changes with every step:"
        " {names}{more:and-more}"
    ),
    "optimiser-not-capturable": (
        "cannot be captured as a CUDA graph, because state on the CPU changes with every step:"
        " {names}{more:and-more}; capturable=True keeps the counters of PyTorch's optimisers on the"
        " device"
    ),
    "capture-meets-a-wait": (
        "a CUDA graph cannot contain a call that waits for the device, here {what:short}: take this"
        " call out of the step to try a graph; {error}"
    ),
    "no-time-for-alternative": "not tried, because no time was left; use a larger --seconds",
    "one-attempt": "one attempt, and its first step",
    "gain-not-resolved": "the gain is too uncertain",
    "difference-not-known": "the difference is not known",
    "saves-no-time": "a step does not become faster",
    "reference-of-gains": "the other rows are compared with this row",
    "measured-once": "measured once",
    "measured-too-few-times": "measured {number} times, too few for an interval",
    "nothing-is-made": "nothing is made",
    "step-not-resolved": (
        "The time of a step is too uncertain, and measuring longer would not help."
    ),
    "step-needs-seconds": (
        "The time of a step is too uncertain: run again with --seconds {needed:,.0f}."
    ),
    # What is done now.
    "waited-beside-seconds": (
        "waited {seconds:.0f} s for another run; --seconds does not count this"
    ),
    "attempting": "{name}: one attempt",
    "attempting-with-compilation": "{name}: one attempt, which also compiles the step",
    "running-the-step-once-more": "the step once more",
    "timing-in-turn": "timing the step and {names}, in turn",
    # What a trace says of its steps.
    "given-by-step-ms": "given by --step-ms",
    "not-in-any-trace": (
        "A trace does not show lines of the program, times without the profiler, or alternatives."
    ),
    "run-the-program": "overhead explain FILE.py:FUNCTION runs the program and shows them.",
    "one-process-read": (
        "{processes} processes have device work in this trace. Process {process} is"
        " explained: {device_ns:time} of device work. Others: {others}. Choose one with"
        " --process."
    ),
    "other-process": "process {process} ({device_ns:time})",
    "process-with-name": "{process:plain 60} {name:plain 40}",
    "allocations-unknown": "not recorded",
    "allocations-not-recorded": (
        "Allocations were not recorded; profile_memory=True of torch.profiler records them."
    ),
    "times-of-what-was-recorded": "The times below are those of the recording.",
    "steps-after-the-first-differ": (
        "No verdict, because the steps differ. The shortest ones take {host_ns:time} on the CPU"
        " and {device_ns:time} on the device: {bound:bound}. On average the {steps:count step}"
        " after the first take {mean_host_ns:time} on the CPU and {mean_device_ns:time} on the"
        " device: {mean_bound:bound}."
    ),
    "no-verdict-beside-the-profiler": (
        "No verdict: the profiler itself delays calls for {share:percent} of the time of the steps."
    ),
    "no-verdict-with-calls-that-may-wait": (
        "No verdict: calls such as {call:short} take {mean_ns:time} of a step ({share:percent})"
        " while the device works, and the trace does not tell whether they wait for it. If they"
        " wait, a step takes {host_ns:time} on the CPU and {device_ns:time} on the device."
    ),
    "cost-chosen-by-step-ms": (
        "The cost of the profiler, {operation_ns:time} for each operation, was chosen so that"
        " the profile agrees with --step-ms. So --step-ms cannot check the profile."
    ),
    "other-device-not-read": (
        "The device work of this trace is of the category {category:plain 60}, which names no"
        " calls, so overhead does not read it. What follows is about the CPU."
    ),
    "processor-only": (
        "The trace has operations on the CPU only. A step takes {step_ns:time}, {how}."
    ),
    "processor-only-without-a-time": (
        "The trace has operations on the CPU only, and the time of a step is not known."
    ),
    "cuda-not-traced": (
        "the recording has ranges, but no CUDA calls and no device work, so nothing tells what they"
        " wait for"
    ),
    "trace-cuda-too": (
        "If the program uses a GPU, CUDA was not traced: record with nsys profile --trace"
        " cuda,nvtx."
    ),
    "record-the-device-too": (
        "If the program uses a device, record it too: ProfilerActivity.CUDA, or the activity of"
        " that device."
    ),
    "no-launches": "No verdict: the recording has no launches of kernels.",
    "too-few-launches": (
        "No verdict: the recording has only {launches:count launch/launches}. Record more steps."
    ),
    "several-devices": (
        "{devices} devices take part. The verdict is about device {device:plain 30}, which works"
        " longest: {busy:percent} of a step."
    ),
    "devices-in-turn": (
        "{devices} devices take part. No device works for more than {busy:percent} of a step, but"
        " at least one of them works for {together:percent} of it: they work in turn. The verdict"
        " is about device {device:plain 30}, which works longest."
    ),
    # What the traces of several ranks say.
    "recording-of-rank": "rank {rank:plain 30}: {why}",
    "traces-of-some-ranks": (
        "These are the traces of {given:,} of {ranks:count rank}. Collectives may also wait for the"
        " others, and the rank that is late may be one of those."
    ),
    "steps-numbered-otherwise": (
        "Rank {rank:plain 30} numbers its steps otherwise: the ends of its collectives show that"
        " {shift:+d} belongs to each number. This was corrected."
    ),
    "steps-begin-elsewhere": (
        "The trace of rank {rank:plain 30} begins with step {number}, that of rank {other:plain 30}"
        " with step {other_number}. Steps with the same number are compared."
    ),
    "rest-is-of-rank": "What follows is about rank {rank:short}.",
    "ranks-not-comparable": "Ranks cannot be compared: {why}.",
    "collectives-may-wait": (
        "The device works {device_ns:time} in a step. {collective_ns:time} of these are"
        " collectives, which may be waiting for other ranks."
    ),
    "collectives-wait": (
        "The device works {device_ns:time} in a step. {collective_ns:time} of these are"
        " collectives, and for {waiting_ns:time} it waits for other ranks."
    ),
    "collectives-wait-in-shared-steps": (
        "The device works {device_ns:time} in a step. {collective_ns:time} of these are"
        " collectives, and for {waiting_ns:time} it waits for other ranks. This is the average"
        " of the {shared:,} of {steps:count step} that are in all traces."
    ),
    "no-verdict-of-one-rank": (
        "No verdict from one rank: its collectives take {collective_ns:time} of a step, and one"
        " trace cannot show whether they wait for other ranks or exchange data. Without them, a"
        " step is {bound_if_waiting:bound}; if they only exchange data, it is"
        " {bound_if_exchange:bound}. Give the traces of all ranks: --trace RANK0 RANK1."
    ),
    "no-verdict-with-other-collectives": (
        "No verdict, because some collectives are not in all traces. A step is"
        " {bound_if_waiting:bound} if its collectives"
        " ({collective_ns:time}) only wait for other ranks, and {bound_if_exchange:bound} if"
        " they only exchange data."
    ),
    "no-verdict-without-comparing-ranks": (
        "No verdict, because the ranks cannot be compared. A step is"
        " {bound_if_waiting:bound} if its collectives"
        " ({collective_ns:time}) only wait for other ranks, and {bound_if_exchange:bound} if"
        " they only exchange data."
    ),
    "steps-differ-in-waits": (
        "No verdict, because the steps differ. The shortest ones take {host_ns:time} on the CPU"
        " and {device_ns:time} on the device: {bound:bound}. On average a step takes"
        " {step_ns:time}, and waits {waiting_ns:time} of these for other ranks."
    ),
    "steps-differ-in-collectives": (
        "No verdict, because the steps differ. The shortest ones take {host_ns:time} on the CPU"
        " and {device_ns:time} on the device: {bound:bound}. On average a step takes"
        " {step_ns:time}. {waiting_ns:time} of these are collectives, which may be waiting"
        " for other ranks."
    ),
    "bound-by-ranks": (
        "Bound by other ranks: in the profile, a step takes {step_ns:time}; without its waits"
        " for other ranks it would take {without_waits_ns:time} ({times:factor} faster)."
    ),
    "step-without-these-waits": (
        "Without these waits, a step takes {host_ns:time} on the CPU and {device_ns:time}"
        " on the device: {bound:bound}."
    ),
    "step-without-collectives": (
        "Without collectives, a step takes {host_ns:time} on the CPU and {device_ns:time}"
        " on the device: {bound:bound}."
    ),
    # What a profile does not tell.
    "measured-beside-the-profile": "measured next to the profile",
    "profile-unreadable": "the profile cannot be read: {why}",
    "no-device-work-seen": (
        "the profiler saw no work on the device: the step launches none, or you lack the permission"
        " to profile the device (CUPTI; see https://developer.nvidia.com/ERR_NVGPUCTRPERM)"
    ),
    "no-call-sites": "the lines that call operations were not recorded",
    "call-sites-not-recorded": "the lines that call operations were not recorded: {error}",
    "lines-missing": "of {steps:count profiled step} the lines of {missing} are missing: {why}",
    "operations-differ": (
        "operation {number} was {name:plain 80} in the timed run, but {other:plain 80} in the"
        " profile that records lines"
    ),
    "step-ends-before-the-operation": (
        "operation {number} was the end of the step in the timed run, but {other:plain 80} in the"
        " profile that records lines"
    ),
    "recorded-step-ends-before-the-operation": (
        "operation {number} was {name:plain 80} in the timed run, but the end of the step in the"
        " profile that records lines"
    ),
    "other-operations-with-lines": "the step runs other operations when the lines are recorded",
    "step-without-torch-not-profiled": (
        "the step does not use PyTorch, so it is not profiled: only its times are measured"
    ),
    "torch-on-device-not-profiled": (
        "PyTorch on {device} cannot be profiled: only its times are measured"
    ),
    "library-not-profiled": "{library} cannot be profiled: only its times are measured",
    "step-cannot-be-profiled": "the step cannot be profiled: {error}",
    "running-the-step-on-the-host": "the step, as usual",
    "running-the-step-under-conditions": "the step under other conditions",
    "profiling-the-step": "profiling the step",
    "profiling-the-device": "profiling the device's work",
    "profiling-the-host": "profiling the CPU's work",
    "finding-lines-of-operations": "finding the lines of the operations",
    # Why an explanation ended early.
    "ended-in-one-step": (
        "{why}: name one iteration: a function that returns step(); see docs/explain.md"
    ),
    "interrupted-explain": (
        "interrupted; the attribute explanation of this exception has what was measured until then,"
        " and sys.last_value is the exception if nothing caught it"
    ),
}
