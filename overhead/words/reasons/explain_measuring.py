"""The sentences of what a measured step or call, and a recording of one, could not tell."""

from __future__ import annotations

TEMPLATES = {
    # What a step reaches, and what it computed.
    "reaches-too-many-objects": "this and later parts are not visited: the step reaches over {most:,} objects",
    "part-unreadable": "cannot be read: {error}",
    "set-without-order": "cannot be read: TypeError: the objects of a set have no order",
    "too-many-parts": "has over {most:,} parts",
    "part-too-large": "too large to compare",
    "part-of-unknown-type": "cannot be compared: {type}",
    "part-holds-other-things": "cannot be read: TypeError: {type} holds other things than numbers and text",
    "not-reached-by-alternative": "your alternative does not reach it",
    "alternative-lacks-changed-array": "your alternative has no reference to an array that the step changes",
    "value-only-of-step": "{name}: {value} and nothing",
    "value-only-of-alternative": "{name}: nothing and {value}",
    "values-differ": "{name}: {first} and {second}",
    "values-differ-by-share": "{name}: {first} and {second} (difference {share:.1e} of the largest value)",
    "no-values-to-compare": "there are no values to compare",
    "step-without-results": "the step returns nothing and changes no array: there are no results to compare",
    "results-not-finite": "the results are not finite, so they cannot be compared",
    "step-does-not-vary": (
        "the results of the step are the same in each step, so earlier results that are kept would look alike"
    ),
    "nothing-varied": "nothing could be varied, so earlier results that are kept would look alike",
    "alternative-does-not-vary-alike": (
        "the results of the step change with the values that it reaches, those of your alternative do not, or not in "
        "the same way: it may return earlier results, or hold its own copies"
    ),
    "alternative-stops-working": ("after more steps the results of your alternative are others than those of the step"),
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
    "same-as-default-mode-on-cpu": "on the CPU it is the same as the default mode",
    "reads-differ-between-steps": (
        "RuntimeError: the step reads more values from the device in some steps than in others"
    ),
    "step-not-capturable": "not capturable: state on the host that changes with every step: {names}{more:and-more}",
    "optimiser-not-capturable": (
        "not capturable: state on the host that changes with every step: {names}{more:and-more}; capturable=True keeps "
        "the counters of PyTorch's optimisers on the device"
    ),
    "no-time-for-alternative": "no time was left: a larger --seconds gives it some",
    "one-attempt": "one attempt, with the first step",
    "gain-not-resolved": "not resolved",
    "difference-not-known": "the difference is not known",
    "saves-no-time": "no step is saved time",
    "reference-of-gains": "the gains are relative to it",
    "measured-once": "measured once",
    "measured-too-few-times": "measured {number} times, too few for an interval",
    "nothing-is-made": "nothing is made",
    "step-not-resolved": "The time of a step is not resolved: measuring longer would not help.",
    "step-needs-seconds": "The time of a step is not resolved: --seconds {needed:,.0f} would be needed.",
    # What is done now.
    "waited-beside-seconds": "waited {seconds:.0f} s for another run; --seconds does not count this",
    "attempting": "{name}: one attempt",
    "attempting-with-compilation": "{name}: one attempt, which compiles the step",
    "running-the-step-once-more": "the step once more",
    "timing-in-turn": "timing the step and {names} in turn",
    # Why a recording allows no verdict.
    "many-events-backwards": "{backwards:,} of {events:,} events end before they begin",
    "many-events-unreadable": "{unreadable:,} of {events:,} events cannot be read",
    "times-rounded": "its times are rounded to {rounded_ns:micro} µs",
    "many-launches-without-work": (
        "{lost:,} of {launches:,} launches ({share:percent}) have no device work in this recording; its buffers may "
        "have overflowed"
    ),
    "much-work-lost": (
        "{calls} have no device work in this recording; it may have taken {share:percent} of the time of the steps"
    ),
    "calls-of-launches": "{lost:,} of {launches:,} launches",
    "calls-of-copies": "{lost:,} of {copies:,} copies and fills",
    "calls-of-both": "{launches} and {copies}",
    "many-migrations-without-call": (
        "{pieces:,} copies (managed memory) were issued by no call in this recording, {share:percent} of the device's "
        "time"
    ),
    "much-work-without-call": (
        "{pieces:,} kernels and copies were issued by no call in this recording, {share:percent} of the device's time"
    ),
    "many-launch-numbers-shared": "{kernels:,} kernels share the number of a launch with another kernel",
    "replays-differ": ("replays of one graph have different numbers of kernels: {missing:,} of {nodes:,} are missing"),
    "many-waits-unexplained": (
        "{waits:count wait} for the device, {share:percent} of the time of the steps, end when no recorded work ends: "
        "device work is missing, or the clocks of host and device differ"
    ),
    "threads-side-by-side": (
        "a thread waits for the device for {share:percent} of the time of the steps while another one runs operations; "
        "threads that work side by side are not told apart"
    ),
    "clocks-contradict": (
        "the times of host and device contradict each other by {wrong_ns:micro} µs, as after a jump of a clock"
    ),
    "many-times-contradict": (
        "{pieces:count piece} of device work of {launches:,} began before the call that issued it, or ended after the "
        "wait for it"
    ),
    # What a recording does not show, or shows only in part.
    "taken-as-one-step": (
        "No steps are marked: the recording of {recorded_ns:length} is taken as one step. Mark them: profiler.step(), "
        "or ranges of NVTX named step 1, step 2."
    ),
    "part-taken-as-one-step": (
        "No steps are marked: {shown_ns:length} of the recording of {recorded_ns:length} are taken as one step, from "
        "the first launch to the last device work. Mark them: profiler.step(), or ranges of NVTX named step 1, step 2."
    ),
    "start-up-left-out": "The first call of {operation}, {took_ns:length}, is left out as start-up.",
    "steps-without-work-left-out": "Left out: {steps:count marked step} without device work.",
    "profiler-holds-up-calls": (
        "The profiler itself holds up calls for {share:percent} of the time of the steps; that counts as host work."
    ),
    "device-clock-apart": (
        "The device's clock is about {apart_ns:micro} µs {side} against the host's: corrected by its launches and "
        "waits."
    ),
    "device-clock-drifts": (
        "The device's clock is about {apart_ns:micro} µs {side} against the host's, and drifts by {drift_us:,.0f} µs "
        "a second: corrected by its launches and waits."
    ),
    "migrations-left-out": (
        "Left out: {pieces:count piece} of device work without a call ({share:percent} of the device's time), "
        "{migrations:,} of them of managed memory."
    ),
    "work-without-call-left-out": (
        "Left out: {pieces:count piece} of device work without a call ({share:percent} of the device's time)."
    ),
    "launch-numbers-shared": "{kernels:count kernel} have the launch number of another kernel; they are kept.",
    "earlier-work-left-out": "Left out: {pieces:count piece} of device work from before the recording.",
    "doubled-events-left-out": "Left out: {events:count event} that the recording has twice.",
    "bad-events-left-out": "Left out: {events:count event} that cannot be read or end before they begin.",
    "launches-without-work": "{lost:,} of {launches:,} launches have no device work in this recording.",
    "copies-without-work": "{lost:,} of {copies:,} copies and fills have no device work in this recording.",
    "nodes-missing": "Replays of one graph differ: {missing:,} of their kernels are missing.",
    "waits-unexplained": "{waits:count wait} ({share:percent} of the steps) end when no recorded work ends.",
    "times-contradict": "{pieces:count piece} of device work with times that contradict all others.",
    # What a trace says of its steps.
    "trace-of-one-half": "{file}: no device work in this trace that a call launched: {why}",
    "calls-not-recorded": "its calls were not recorded",
    "trace-of-launches-alone": (
        "{file}: no device work in this trace that a call launched; it has {launches:,} launches; record both host and "
        "device (ProfilerActivity.CPU and CUDA)"
    ),
    "trace-without-device-work": (
        "{file}: no device work in this trace that a call launched; record both host and device (ProfilerActivity.CPU "
        "and CUDA)"
    ),
    "given-by-step-ms": "given by --step-ms",
    "not-in-any-trace": "A trace does not show lines of the program, times without the profiler, or alternatives.",
    "one-process-read": "Only one process was read, of {processes} with device work.",
    "allocations-unknown": "not recorded",
    "allocations-not-recorded": "Allocations of the library were not recorded (profile_memory=True records them).",
    "times-of-what-was-recorded": "The times below are of what was recorded.",
    "steps-differ": (
        "No verdict: the steps differ. The shortest ones take the host {host_ns:micro} µs and the device "
        "{device_ns:micro} µs: {bound:bound}. All {steps:count step} take the host {mean_host_ns:micro} µs and the "
        "device {mean_device_ns:micro} µs on average: {mean_bound:bound}."
    ),
    "steps-after-the-first-differ": (
        "No verdict: the steps differ. The shortest ones take the host {host_ns:micro} µs and the device "
        "{device_ns:micro} µs: {bound:bound}. The {steps:count step} after the first take the host "
        "{mean_host_ns:micro} µs and the device {mean_device_ns:micro} µs on average: {mean_bound:bound}."
    ),
    "no-verdict-beside-the-profiler": "No verdict: the profiler holds up calls for {share:percent} of the steps.",
    "no-verdict-with-calls-that-may-wait": (
        "No verdict: calls such as {call:short}, {mean_ns:micro} µs of a step ({share:percent}), last while the device "
        "works. They may be waits for it, which are no host work."
    ),
    "cost-chosen-by-step-ms": (
        "The profiler's cost, {operation_ns:micro} µs an operation, was chosen so that the replay takes --step-ms. So "
        "--step-ms cannot check the replay."
    ),
    "processor-only": (
        "Operations on the processor only: a step takes {step_ns:micro} µs, {how}. If the program uses a GPU, record "
        "ProfilerActivity.CUDA too."
    ),
    "processor-only-without-a-time": (
        "Operations on the processor only: a step takes a time that is not known. If the program uses a GPU, record "
        "ProfilerActivity.CUDA too."
    ),
    "several-devices": "{devices} devices take part, and the verdict is of the one that works longest: {each}.",
    "device-works": "device {device} works {busy_ns:micro} µs of a step and is idle for {idle:percent} of it",
    "call-outside-of-operations": (
        "Outside of operations, {mean_ns:micro} µs of the host's time of a step are in {call:short}."
    ),
    # What the traces of several ranks say.
    "recording-of-rank": "rank {rank:plain 30}: {why}",
    "traces-of-some-ranks": (
        "These are traces of {given:,} of {ranks:count rank}: collectives may also wait for the others, and a rank "
        "that is late may be one of them."
    ),
    "rest-is-of-rank": "The rest is rank {rank:short}'s.",
    "ranks-not-comparable": "Ranks cannot be compared: {why}.",
    "collectives-may-wait": (
        "Of the {device_ns:micro} µs in which the device works on a step, {collective_ns:micro} µs are collectives, "
        "which may be waiting for other ranks."
    ),
    "collectives-wait": (
        "Of the {device_ns:micro} µs in which the device works on a step, {collective_ns:micro} µs are collectives, "
        "{waiting_ns:micro} µs of which it waits for other ranks."
    ),
    "collectives-wait-in-shared-steps": (
        "Of the {device_ns:micro} µs in which the device works on a step, {collective_ns:micro} µs are collectives, "
        "{waiting_ns:micro} µs of which it waits for other ranks. That is of the {shared:,} of {steps:count step} that "
        "are in all traces."
    ),
    "no-verdict-of-one-rank": ("No verdict from one rank: collectives may be waiting. Give the traces of all ranks."),
    "no-verdict-with-other-collectives": (
        "No verdict: collectives that are not in all traces may be waiting for other ranks."
    ),
    "no-verdict-without-comparing-ranks": (
        "No verdict: collectives may be waiting for other ranks, and the ranks cannot be compared."
    ),
    "step-without-these-waits": (
        "Without these waits, a step takes the host {host_ns:micro} µs and the device {device_ns:micro} µs: "
        "{bound:bound}."
    ),
    "step-without-collectives": (
        "Without collectives, a step takes the host {host_ns:micro} µs and the device {device_ns:micro} µs: "
        "{bound:bound}."
    ),
    # What a trial of a statement finds.
    "call-does-nothing": "CALL does nothing when it runs: {why}; to measure the loop alone, write pass",
    "call-is-an-annotation": (
        "it is an annotation; to measure a function, write FILE.py:FUNCTION or module:function, without spaces"
    ),
    "call-is-a-name": "it is a name alone; to call it, write {name}()",
    "call-is-quoted": "it is a text in quotes; write the statement without them",
    "call-is-a-constant": "it is a constant",
    "call-compiles-to-nothing": "Python compiles it to nothing",
    "no-statement-given": "no statement was given",
    "name-not-in-setup": (
        '{error}; a statement has only the names of --setup, such as --setup "{example}"; in Python: '
        'setup="{example}", or a function in place of the statement'
    ),
    "call-not-repeatable": "{call} cannot be repeated: the first calls work, then {why}",
    "returns-unfinished-work": "{call} returns {what}, so its work is not done: write {finish}",
    "keeps-unfinished-work": "{call} keeps {what}, so its work is not done: write {finish}",
    "wait-none-leaves-it-out": "to time the call without that work, give --wait none",
    "returned-work-may-be-missing": "the call returns {what}, whose work may be missing from the cost",
    "kept-work-may-be-missing": "the call keeps {what}, whose work may be missing from the cost",
    "ended-while-doing": "{doing}: {why}",
    "ended-in-one-step": "{why}: name one iteration: a function that returns step(); see docs/explain.md",
    "starting-a-process": "starting",
    "trying-each-statement": "a trial of each statement",
    # How the end of the work is awaited.
    "nothing-to-wait-for": "nothing, since no library was seen that works on after a call returns",
    "nothing-as-asked": "nothing, as --wait none asks",
    "waits-by-statement": "{statement}",
    "waits-for-both": "{first} and {second}",
    "waits-for-results-of-jax": "jax.block_until_ready(the last results)",
    "waits-for-kept-arrays-of-jax": (
        "jax.effects_barrier() and block_until_ready() of all arrays that are kept, since the call returns none; the "
        "work of arrays that it drops unread is not included: return them"
    ),
    "waits-for-evaluated-arrays-of-mlx": (
        "mlx.core.synchronize(), for what was evaluated; an array that nothing evaluates is not computed"
    ),
    "torch-without-device": "torch {version} reaches no {kind} device",
    "setup-without-webgpu-device": "SETUP must give the device a name, device = adapter.request_device_sync()",
    # The times of statements.
    "first-answer": "a first answer, from one process: the slope between n = {few} and {many}",
    "first-answer-of-row": "first answer, from one process; others may differ: {row}",
    "interrupted-time": (
        "interrupted; measured until then: {calls}; the attribute timing of this exception has it, and "
        "sys.last_value is the exception if nothing caught it"
    ),
    "interrupted-explain": (
        "interrupted; the attribute explanation of this exception has what was measured until then, and "
        "sys.last_value is the exception if nothing caught it"
    ),
    "interrupted-with-first-answers": "Interrupted: these are first answers, each from one process.",
    "interrupted-with-fewer-processes": ("Interrupted: these are figures from fewer processes than a whole run has."),
    "versions-of-interpreters": "versions of the first and the second interpreter: {versions}",
    "versions-of-both": "{field} {base} and {new}",
    "row-without-cost": "{row} has no cost",
    "rows-without-cost": "{first} and {second} has no cost",
    "ratio-not-formed": "it cannot be formed",
    # What a profile does not tell.
    "measured-beside-the-profile": "measured beside the profile",
    "profile-unreadable": "the profile is unreadable: {why}",
    "no-device-work-seen": (
        "the profiler saw no work on the device: the step issues none, or this user may not profile the device (CUPTI "
        "needs a permission that the driver gives)"
    ),
    "no-call-sites": "no call sites were recorded",
    "call-sites-not-recorded": "no call sites: {error}",
    "lines-missing": "the lines of {missing} of {steps:count profiled step} are missing: {why}",
    "operations-differ": (
        "operation {number} was {name:plain 80} in the timed run, but {other:plain 80} in the profile that records "
        "source lines"
    ),
    "step-ends-before-the-operation": (
        "operation {number} was the end of the step in the timed run, but {other:plain 80} in the profile that records "
        "source lines"
    ),
    "recorded-step-ends-before-the-operation": (
        "operation {number} was {name:plain 80} in the timed run, but the end of the step in the profile that records "
        "source lines"
    ),
    "other-operations-with-lines": "the step runs other operations when the lines are recorded",
    "step-without-torch-not-profiled": "a step without PyTorch is not profiled: only its times are measured",
    "torch-on-device-not-profiled": "PyTorch on {device} is not profiled: only its times are measured",
    "library-not-profiled": "{library} is not profiled: only its times are measured",
    "step-cannot-be-profiled": "the step cannot be profiled: {error}",
    "running-the-step-on-the-host": "the step as the host runs it",
    "running-the-step-under-conditions": "the step under other conditions on the host",
    "profiling-the-step": "profiling the step",
    "profiling-the-device": "profiling the device's work",
    "profiling-the-host": "profiling the host's work",
    "finding-lines-of-operations": "finding the lines of the operations",
}
