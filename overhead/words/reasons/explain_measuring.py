"""The sentences of what a measured step or call, and a recording of one, could not tell."""

from __future__ import annotations

TEMPLATES = {
    # How the time of a call divides.
    "sampling-needs-linux": (
        "samples of the running call are needed, which work with CPython on 64-bit Linux only"
    ),
    "sampling-needs-main-thread": "the call does not run in the main thread of its process",
    "sampling-needs-processor": (
        "samples of a running call need an x86-64 or 64-bit Arm processor; this is {processor}"
    ),
    "sampling-not-permitted": (
        "this system does not let a process stop its own child for a sample (ptrace: {error}); in a"
        " container, add --cap-add=SYS_PTRACE; elsewhere, sudo sysctl kernel.yama.ptrace_scope=1"
    ),
    "interpreter-layout-unknown": (
        "where CPython {version} keeps the running instruction was not found"
    ),
    "too-few-samples": (
        "only {samples:count sample} could be taken, {fewest} are needed; the machine is busy, or"
        " the call waits in other threads: run again"
    ),
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
    # Why a recording allows no verdict.
    "many-events-backwards": "{backwards:,} of {events:,} events end before they begin",
    "many-events-unreadable": "{unreadable:,} of {events:,} events cannot be read",
    "times-rounded": "the times of the recording are rounded to {rounded_ns:micro} µs",
    "many-launches-without-work": (
        "{lost:,} of {launches:,} launches ({share:percent}) have no device work in this recording;"
        " its buffers may have overflowed"
    ),
    "much-work-lost": (
        "{calls} have no device work in this recording; that work may have taken {share:percent} of"
        " the time of the steps"
    ),
    "calls-of-launches": "{lost:,} of {launches:,} launches",
    "calls-of-copies": "{lost:,} of {copies:,} copies and fills",
    "calls-of-both": "{launches} and {copies}",
    "many-migrations-without-call": (
        "no call in this recording issued {pieces:,} copies of managed memory, which take"
        " {share:percent} of the device's time"
    ),
    "much-work-without-call": (
        "no call in this recording issued {pieces:,} of the kernels and copies in it, which take"
        " {share:percent} of the device's time"
    ),
    "many-launch-numbers-shared": (
        "{kernels:,} kernels share the number of a launch with another kernel"
    ),
    "replays-differ": (
        "replays of one graph have different numbers of kernels: {missing:,} of {nodes:,} are"
        " missing"
    ),
    "many-waits-unexplained": (
        "{waits:count wait} for the device ({share:percent} of the time of the steps) end when no"
        " recorded work ends, so device work is missing, or the clocks of CPU and device differ"
    ),
    "threads-side-by-side": (
        "for {share:percent} of the time of the steps one thread waits for the device while another"
        " one runs operations, and threads that work at the same time cannot be told apart"
    ),
    "clocks-contradict": (
        "the times of CPU and device contradict each other by {wrong_ns:micro} µs: a clock may have"
        " jumped"
    ),
    "many-times-contradict": (
        "{pieces:,} of {launches:,} pieces of device work began before the call that issued them,"
        " or ended after the wait for them"
    ),
    # What a recording does not show, or shows only in part.
    "taken-as-one-step": (
        "No steps are marked, so the whole recording of {recorded_ns:length} counts as one step."
        " Mark the steps with profiler.step(), or with NVTX ranges named step 1, step 2."
    ),
    "part-taken-as-one-step": (
        "No steps are marked, so {shown_ns:length} of the recording of {recorded_ns:length} count"
        " as one step, from the first launch to the last device work. Mark the steps with"
        " profiler.step(), or with NVTX ranges named step 1, step 2."
    ),
    "start-up-left-out": (
        "The first call of {operation} ({took_ns:length}) is left out, because it is start-up."
    ),
    "steps-without-work-left-out": "Left out: {steps:count marked step} without device work.",
    "profiler-holds-up-calls": (
        "The profiler itself delays calls for {share:percent} of the time of the steps. This counts"
        " as CPU work here."
    ),
    "device-clock-apart": (
        "The device's clock is about {apart_ns:micro} µs {side} against the CPU's. Launches and"
        " waits were used to correct this."
    ),
    "device-clock-drifts": (
        "The device's clock is about {apart_ns:micro} µs {side} against the CPU's, and drifts by"
        " {drift_us:,.0f} µs a second. Launches and waits were used to correct this."
    ),
    "migrations-left-out": (
        "Left out: {pieces:count piece} of device work that no call issued ({share:percent} of the"
        " device's time); {migrations:,} of them move managed memory."
    ),
    "work-without-call-left-out": (
        "Left out: {pieces:count piece} of device work that no call issued ({share:percent} of the"
        " device's time)."
    ),
    "launch-numbers-shared": (
        "{kernels:count kernel} have the launch number of another kernel; they are kept."
    ),
    "earlier-work-left-out": (
        "Left out: {pieces:count piece} of device work from before the recording."
    ),
    "doubled-events-left-out": "Left out: {events:count event} that the recording has twice.",
    "bad-events-left-out": (
        "Left out: {events:count event} that cannot be read or end before they begin."
    ),
    "launches-without-work": (
        "{lost:,} of {launches:,} launches have no device work in this recording."
    ),
    "copies-without-work": (
        "{lost:,} of {copies:,} copies and fills have no device work in this recording."
    ),
    "nodes-missing": "Replays of one graph differ: {missing:,} of their kernels are missing.",
    "waits-unexplained": (
        "{waits:count wait} ({share:percent} of the time of the steps) end when no recorded work"
        " ends."
    ),
    "times-contradict": (
        "{pieces:count piece} of device work with times that contradict all others."
    ),
    # What a trace says of its steps.
    "trace-of-one-half": "{file}: this trace has no device work that a call launched: {why}",
    "calls-not-recorded": "its calls were not recorded",
    "trace-of-launches-alone": (
        "{file}: this trace has {launches:,} launches and no device work; record both"
        " (ProfilerActivity.CPU and ProfilerActivity.CUDA)"
    ),
    "trace-without-device-work": (
        "{file}: this trace has no device work that a call launched; record both"
        " (ProfilerActivity.CPU and ProfilerActivity.CUDA, on a machine with a GPU)"
    ),
    "given-by-step-ms": "given by --step-ms",
    "not-in-any-trace": (
        "A trace does not show lines of the program, times without the profiler, or alternatives."
        " Run the program with overhead explain FILE.py:FUNCTION to learn them."
    ),
    "one-process-read": (
        "{processes} processes have device work, and only the one with most of it was read."
    ),
    "allocations-unknown": "not recorded",
    "allocations-not-recorded": "Allocations were not recorded; profile_memory=True records them.",
    "times-of-what-was-recorded": "The times below are those of the recording.",
    "steps-differ": (
        "No verdict, because the steps differ. The shortest ones take {host_ns:micro} µs on the CPU"
        " and {device_ns:micro} µs on the device: {bound:bound}. On average {steps:count step} take"
        " {mean_host_ns:micro} µs on the CPU and {mean_device_ns:micro} µs on the device:"
        " {mean_bound:bound}."
    ),
    "steps-after-the-first-differ": (
        "No verdict, because the steps differ. The shortest ones take {host_ns:micro} µs on the CPU"
        " and {device_ns:micro} µs on the device: {bound:bound}. On average the {steps:count step}"
        " after the first take {mean_host_ns:micro} µs on the CPU and {mean_device_ns:micro} µs on"
        " the device: {mean_bound:bound}."
    ),
    "no-verdict-beside-the-profiler": (
        "No verdict: the profiler itself delays calls for {share:percent} of the time of the steps."
    ),
    "no-verdict-with-calls-that-may-wait": (
        "No verdict: calls such as {call:short} take {mean_ns:micro} µs of a step ({share:percent})"
        " while the device works. They may be waits for the device, which are no CPU work."
    ),
    "cost-chosen-by-step-ms": (
        "The cost of the profiler, {operation_ns:micro} µs for each operation, was chosen so that"
        " the profile agrees with --step-ms. So --step-ms cannot check the profile."
    ),
    "processor-only": (
        "The trace has operations on the CPU only. A step takes {step_ns:micro} µs, {how}. If the"
        " program uses a GPU, record ProfilerActivity.CUDA too."
    ),
    "processor-only-without-a-time": (
        "The trace has operations on the CPU only, and the time of a step is not known. If the"
        " program uses a GPU, record ProfilerActivity.CUDA too."
    ),
    "several-devices": (
        "{devices} devices take part. The verdict is about the one that works longest: {each}."
    ),
    "device-works": (
        "device {device} works for {busy_ns:micro} µs of a step and is idle for {idle:percent}"
        " of it"
    ),
    "call-outside-of-operations": (
        "Outside of operations, {call:short} takes {mean_ns:micro} µs of the CPU time of a step."
    ),
    # What the traces of several ranks say.
    "recording-of-rank": "rank {rank:plain 30}: {why}",
    "traces-of-some-ranks": (
        "These are the traces of {given:,} of {ranks:count rank}. Collectives may also wait for the"
        " others, and the rank that is late may be one of those."
    ),
    "rest-is-of-rank": "What follows is about rank {rank:short}.",
    "ranks-not-comparable": "Ranks cannot be compared: {why}.",
    "collectives-may-wait": (
        "The device works {device_ns:micro} µs in a step. {collective_ns:micro} µs of these are"
        " collectives, which may be waiting for other ranks."
    ),
    "collectives-wait": (
        "The device works {device_ns:micro} µs in a step. {collective_ns:micro} µs of these are"
        " collectives, and for {waiting_ns:micro} µs it waits for other ranks."
    ),
    "collectives-wait-in-shared-steps": (
        "The device works {device_ns:micro} µs in a step. {collective_ns:micro} µs of these are"
        " collectives, and for {waiting_ns:micro} µs it waits for other ranks. This is the average"
        " of the {shared:,} of {steps:count step} that are in all traces."
    ),
    "no-verdict-of-one-rank": (
        "No verdict from one rank, because collectives may be waiting for others. Give the traces"
        " of all ranks."
    ),
    "no-verdict-with-other-collectives": (
        "No verdict: some collectives are not in all traces, and they may be waiting for other"
        " ranks."
    ),
    "no-verdict-without-comparing-ranks": (
        "No verdict: collectives may be waiting for other ranks, and the ranks cannot be compared."
    ),
    "step-without-these-waits": (
        "Without these waits, a step takes {host_ns:micro} µs on the CPU and {device_ns:micro} µs"
        " on the device: {bound:bound}."
    ),
    "step-without-collectives": (
        "Without collectives, a step takes {host_ns:micro} µs on the CPU and {device_ns:micro} µs"
        " on the device: {bound:bound}."
    ),
    # What a trial of a statement finds.
    "call-does-nothing": (
        "CALL does nothing when it runs: {why}; to measure the loop alone, write pass"
    ),
    "call-is-an-annotation": (
        "CALL is an annotation; to measure a function, write FILE.py:FUNCTION or module:function,"
        " without spaces"
    ),
    "call-is-a-name": "CALL is only a name; to call the function, write {name}()",
    "call-is-quoted": "CALL is a text in quotes; write the statement without quotes",
    "call-is-a-constant": "CALL is a constant",
    "call-compiles-to-nothing": "Python compiles CALL to nothing",
    "no-statement-given": "no statement was given",
    "name-not-in-setup": (
        '{error}; define the name in --setup, such as --setup "{example}"; in Python:'
        ' setup="{example}", or a function in place of the statement'
    ),
    "call-not-repeatable": (
        "{call} cannot be repeated: the first calls work, and then it fails: {why}"
    ),
    "returns-unfinished-work": "{call} returns {what}, so its work is not done: write {finish}",
    "keeps-unfinished-work": "{call} keeps {what}, so its work is not done: write {finish}",
    "wait-none-leaves-it-out": "to time the call without that work, add --wait none",
    "returned-work-may-be-missing": (
        "the call returns {what}; the work behind it may be missing in the cost"
    ),
    "kept-work-may-be-missing": (
        "the call keeps {what}; the work behind it may be missing in the cost"
    ),
    "ended-while-doing": "{doing}: {why}",
    "ended-in-one-step": (
        "{why}: name one iteration: a function that returns step(); see docs/explain.md"
    ),
    "starting-a-process": "starting a process",
    "trying-each-statement": "trying each statement once",
    # How the end of the work is awaited.
    "nothing-to-wait-for": (
        "none, because no library was seen that works on after a call returns; if yours does, name"
        " its wait with --wait"
    ),
    "nothing-as-asked": "none, as --wait none asks",
    "waits-by-statement": "{statement}",
    "waits-for-both": "{first} and {second}",
    "waits-for-results-of-jax": "jax.block_until_ready(the last results)",
    "waits-for-kept-arrays-of-jax": (
        "jax.effects_barrier() and block_until_ready() of all arrays that are kept, because the"
        " call returns none; arrays that it drops are not waited for: return them"
    ),
    "waits-for-evaluated-arrays-of-mlx": (
        "mlx.core.synchronize(), for arrays that were evaluated; the others are not computed:"
        " evaluate them"
    ),
    "torch-without-device": "torch {version} reaches no {kind} device",
    "setup-without-webgpu-device": (
        "SETUP must give the device a name: device = adapter.request_device_sync()"
    ),
    # The times of statements.
    "first-answer": "a first answer, from one process: the cost between n = {few} and n = {many}",
    "first-answer-of-row": (
        "first answer, from one process (another process may measure more or less): {row}"
    ),
    "interrupted-time": (
        "interrupted; measured until then: {calls}; the attribute timing of this exception has it,"
        " and sys.last_value is the exception if nothing caught it"
    ),
    "interrupted-explain": (
        "interrupted; the attribute explanation of this exception has what was measured until then,"
        " and sys.last_value is the exception if nothing caught it"
    ),
    "interrupted-with-first-answers": (
        "Interrupted: these are first answers, each from one process. Run again for figures that"
        " hold."
    ),
    "interrupted-with-fewer-processes": (
        "Interrupted: these figures are from fewer processes than those of a whole run."
    ),
    "versions-of-interpreters": "versions of the first and the second interpreter: {versions}",
    "versions-of-both": "{field} {base} and {new}",
    "row-without-cost": "{row} has no cost",
    "rows-without-cost": "{first} and {second} has no cost",
    "ratio-not-formed": "it cannot be formed",
    "processes-of-call": "Only {measured} of {planned} processes measured.",
    "processes-of-call-in-time": (
        "Only {measured} of {planned} processes measured: one more would end after the time limit"
        " of {limit_s:.0f} s."
    ),
    "process-of-call-died": "1 process died, and its samples do not count: {why}.",
    "processes-of-call-died": (
        "{processes} processes died, and their samples do not count; the last one: {why}."
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
}
