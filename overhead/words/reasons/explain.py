"""Sentences of what bounds a step, and of what would change it."""

from __future__ import annotations

TEMPLATES = {
    # Why a figure is missing, and what things are called.
    "not-in-a-trace": "not in a trace",
    "no-step-was-profiled": "no step was profiled",
    "no-work-on-a-device": "no work on a device was seen",
    "no-time-measured": "no time was measured",
    "from-pageable-memory": "{what} from pageable memory",
    # Whether an alternative computes the same.
    "other-results": "other results",
    "results-not-compared": "results not compared",
    "same-results-not-counted": "same results (count not recorded)",
    "same-results": "same results ({compared:count value} compared)",
    "same-results-in-part": "same results ({compared:,} of {whole:,} values compared)",
    # The time of a step.
    "untold-time": "{why:capital}.",
    "not-told-from-zero": "not told from zero",
    "not-told-from-zero-at-most": "not told from zero; it is at most {most_ns:micro} µs",
    "busy-in-the-profile": "from the profile; the shortest and the longest of the profiled steps",
    "recorded-with-the-profiler": "recorded with the profiler",
    "more-steps-took-no-longer": ("more steps took no longer than few: the times beside the profile are not resolved"),
    "interrupted-before": "interrupted before it was measured",
    "no-device-in-the-step": "no device takes part",
    "step-time-has-two-speeds": (
        "the time of a step has two speeds, {lower_ns:micro-spread} and {higher_ns:micro-spread} µs"
    ),
    "step-time-not-resolved": "the time of a step is not resolved{step_ns:micro-interval}",
    "return-time-has-two-speeds": (
        "the time until the step returns has two speeds, {lower_ns:micro-spread} and {higher_ns:micro-spread} µs"
    ),
    "return-time-not-resolved": "the time until the step returns is not resolved{step_ns:micro-interval}",
    "step-as-it-runs": (
        "As the operating system runs it, a step takes {met_ns:micro-spread} µs{processes:in-processes}."
    ),
    "step-as-it-runs-is-apart": (
        "As the operating system runs it, a step takes {met_ns:micro-spread} µs{processes:in-processes}: "
        "{times:factor} the {wall_ns:micro} µs where nothing disturbs it."
    ),
    "step-as-it-runs-not-resolved": (
        "The time of a step as the operating system runs it is not resolved: some steps take far longer than most."
    ),
    "step-measured-so": "{step_ns:micro-spread} µs a step were {how}.",
    "slow-steps": (
        "Slow steps: the mean of all is {mean_ns:micro-spread} µs a step, {times:factor} the {wall_ns:micro} µs that "
        "most steps take."
    ),
    "mean-is-apart": (
        "The mean of all measured steps is {mean_ns:micro-spread} µs, {times:factor} the {wall_ns:micro} µs of an "
        "undisturbed one."
    ),
    # What on the host makes steps long or uneven.
    "no-cause-on-the-host": ("No cause on the host was measured. overhead doctor names what disturbs this machine."),
    "waits-for-a-processor": (
        "{share:percent} of the time the step's thread waits for a processor ({preemptions:,.0f} switches a second): "
        "stop other programs, or give it its own cores."
    ),
    "stopped-by-the-cpu-limit": (
        "{share:percent} of the time the step's thread is stopped by the CPU limit of {cores:g} cores: raise the "
        "limit, or use fewer threads."
    ),
    "collects-garbage": (
        "{share:percent} of the time the step's thread collects garbage (pauses up to {pause_ns:micro} µs)."
    ),
    "collects-garbage-freeze-it": (
        "{share:percent} of the time the step's thread collects garbage (pauses up to {pause_ns:micro} µs): "
        "gc.freeze() after loading, then gc.disable()."
    ),
    "more-threads-than-cores": (
        "PyTorch has {threads:g} threads for {cores:g} cores: torch.set_num_threads({most}) may be faster."
    ),
    "slow-test-loop": ("A fixed test loop takes {times:factor} its best time: another clock, or a busy hyperthread."),
    "other-python-threads": (
        "{threads:count other Python thread} {threads:verb} busy and may hold the interpreter; in a process of "
        "its own such work does not."
    ),
    "gpu-in-another-node": ("The launching core is in another NUMA node than the GPU: try numactl --cpunodebind."),
    # What a step is measured under.
    "as-the-host-runs-it": "the step as the host runs it",
    "without-collection": "without garbage collection",
    "on-one-core": "bound to one core",
    "beside-busy-processes": "beside {number} busy processes",
    "switching-threads-often": "switching threads often",
    "one-library-thread": "one library thread",
    # What alternatives gain.
    "large-gain": "Measured, {name}: {gain:factor-spread} as fast{results:more}.",
    "large-gain-is-a-bound": "Measured, {name} (a bound): {gain:factor-spread} as fast.",
    "large-gain-is-predicted": "Measured, {name} (predicted): {gain:factor-spread} as fast.",
    "synchronisations-do-not-bound": (
        "Synchronisations do not bound the step: without them it was measured {gain:factor-spread} as fast, where a "
        "replay of the profile predicts {predicted:factor}."
    ),
    "host-work-does-not-bound": (
        "Host work does not bound the step: a CUDA graph, which saves almost all of it, is {gain:factor-spread} as "
        "fast."
    ),
    "not-by-the-device-alone": ("Not bound by the device alone: a CUDA graph is {gain:factor-spread} as fast."),
    # Whether there is a verdict.
    "no-verdict": "No verdict: {why}.",
    "no-verdict-without-a-check": ("No verdict: the replay of the profile could not be checked ({why})."),
    "no-verdict-of-the-replay": (
        "No verdict: a replay of the profile gives {replayed_ns:micro} µs a step, measured are {measured_ns:micro} µs. "
        "{apart_ns:micro} µs are not understood."
    ),
    "no-verdict-of-the-profile": ("No verdict: the profile does not account for the step ({why})."),
    "replay-takes-another-time": ("the replay gives {ratio:factor} the measured time; {allowed:percent} is allowed"),
    "replay-unchecked": (
        "Unchecked: times hold the profiler's cost, most of it on the host. --step-ms MS checks them."
    ),
    # What bounds a profiled step.
    "takes-host-and-device": (
        "In the profile, a step takes the host {host_ns:micro} µs and the device {device_ns:micro} µs."
    ),
    "host-bound": (
        "Host-bound: in the profile, a step takes the host {host_ns:micro} µs and the device {device_ns:micro} µs, "
        "{times:factor-or-many} less."
    ),
    "device-bound": (
        "Device-bound: in the profile, a step takes the host {host_ns:micro} µs and the device {device_ns:micro} µs, "
        "{times:factor-or-many} more. Less host work would not make it faster."
    ),
    "bound-by-synchronisation": (
        "Bound by synchronisation: in the profile, a step takes {step_ns:micro} µs, and {without_waits_ns:micro} µs "
        "without its synchronisations ({times:factor-or-many} faster)."
    ),
    "mixed": (
        "Mixed: in the profile, a step takes the host {host_ns:micro} µs and the device {device_ns:micro} µs. Both "
        "must become faster for the step to become much faster."
    ),
    "mixed-without-synchronisations-host": (
        "Mixed: in the profile, a step takes the host {host_ns:micro} µs and the device {device_ns:micro} µs; "
        "synchronisations cost {share:percent} of the step, and without them the host would bound it."
    ),
    "mixed-without-synchronisations-device": (
        "Mixed: in the profile, a step takes the host {host_ns:micro} µs and the device {device_ns:micro} µs; "
        "synchronisations cost {share:percent} of the step, and without them the device would bound it."
    ),
    "device-is-idle": "The device is idle for {share:percent} of a step.",
    "host-work-for-each-launch": (
        "{launches:count launch/launches} a step: {each_ns:micro} µs of host work in operations for each."
    ),
    "most-host-time": ("Most host time in one operation: {name}{line:at}, {host_ns:micro} µs in {calls:count call}."),
    "data-loader": "{share:percent} of the host's time is the DataLoader's next.",
    "pageable-uploads": (
        "Uploads from pageable memory ({count:.4g} a step) block the host for {blocked_ns:micro} µs{line:at}; "
        "pin_memory() and non_blocking=True may avoid that."
    ),
    "pageable-uploads-pinned": (
        "Uploads from pageable memory ({count:.4g} a step) block the host for {blocked_ns:micro} µs{line:at}; with "
        "pin_memory() and non_blocking=True the step was measured {gain:factor-spread} as fast."
    ),
    "synchronisations-measured": (
        "{number:count synchronisation} a step (without them it was measured {gain:factor-spread} as fast); the host "
        "waits longest in {what}{line:at}, {longest_ns:micro} µs."
    ),
    "synchronisations-replayed": (
        "{number:count synchronisation} a step cost {share:percent} of it in the replay; the host waits longest in "
        "{what}{line:at}, {longest_ns:micro} µs."
    ),
    "own-python": ("{own_ns:micro} of {whole_ns:micro} µs of host work are your own Python, between operations."),
    "outside-of-what-the-trace-names": (
        "{outside_ns:micro} of {whole_ns:micro} µs of host work are outside of the operations and ranges that the "
        "trace names."
    ),
    "between-the-operations": (
        "{outside_ns:micro} of {whole_ns:micro} µs of host work are between PyTorch's operations: Python of "
        "libraries, and kernels that they launch."
    ),
    # What bounds a step of the processor, and one without a profile.
    "no-device-takes-part": "No device takes part: a step is work on the processor.",
    "no-device-takes-part-in-a-time": (
        "No device takes part: a step is {wall_ns:micro-spread} µs of work on the processor."
    ),
    "kernels-inside-operations": (
        "Kernels run inside the library's operations, so dispatch and arithmetic cannot be told apart there."
    ),
    "all-in-the-calling-thread": (
        "The step is {wall_ns:micro-spread} µs of work in the calling thread: it returns when its work is done."
    ),
    "in-the-calling-thread": "The step is {wall_ns:micro-spread} µs of work in the calling thread.",
    "other-threads-ran": (
        "Other threads of the process ran for {share:percent} of the time: work that the step hands to them without a "
        "wait is not included."
    ),
    "host-or-synchronisation": (
        "Bound by the host or by synchronisation: the step returns after {issue_ns:micro-spread} µs, and its work is "
        "done after {wall_ns:micro-spread} µs."
    ),
    "host-and-waits-are-not-told-apart": (
        "Host work and waiting inside the step cannot be told apart without a profile of this library."
    ),
    "device-bound-by-times": (
        "Device-bound: the step returns after {issue_ns:micro-spread} µs, and its work is done after "
        "{wall_ns:micro-spread} µs."
    ),
    "bound-by-work-beside": (
        "Bound by the work that the library runs beside the calling thread: the step returns after "
        "{issue_ns:micro-spread} µs, and its work is done after {wall_ns:micro-spread} µs."
    ),
    "faster-calls-do-not-help": "Faster calls would not make it faster.",
    # When the device's work starts.
    "launch-delays": (
        "Device work starts {delay_ns:micro} µs after its launch, on average: {own_ns:micro} µs behind earlier work of "
        "its stream. The latency is {latency_ns:micro} µs (median){longest:more}."
    ),
    "launch-delays-of-streams": (
        "Device work starts {delay_ns:micro} µs after its launch, on average: {own_ns:micro} µs behind earlier work of "
        "its stream, {others_ns:micro} µs behind work of other streams. The latency is {latency_ns:micro} µs "
        "(median){longest:more}."
    ),
    "longest-latency-is-the-first": (
        "the longest, {latency_ns:micro} µs, is that of the first launch of the recording: a kernel is loaded then, or "
        "earlier work still runs"
    ),
    "longest-latency-loads-a-kernel": (
        "the longest, {latency_ns:micro} µs, is that of a launch of {kernel}, its first, which loads the kernel"
    ),
    "longest-latency": "the longest, {latency_ns:micro} µs, is that of a launch of {kernel}",
    # What is missing.
    "not-profiled": "Launches, synchronisations, operations and gaps: {why}.",
    "no-device-work-to-see": ("No work on a device: launches, synchronisations and gaps do not apply."),
    "waits-of-streams-not-modelled": ("Waits of one stream for another are not modelled in the replay."),
    "steps-of-other-operations": (
        "{unknown} of {steps:count profiled step} run other operations than the steps that were profiled without "
        "CUPTI: their host times contain what CUPTI adds."
    ),
    "sites-missing": "{why:capital}.",
    "values-not-checked-while-timed": ("The values that the step computes are not checked while it is timed."),
    "interrupted": ("Interrupted: the times of the step and the alternatives are missing."),
    "interrupted-later": ("Interrupted: the conditions on the host, or a longer measurement of the step, are missing."),
    "no-time-for-conditions": (
        "The step under other conditions on the host: no time was left; a larger --seconds gives it some."
    ),
    "conditions-failed": "The step under other conditions on the host: {error}.",
    "no-replay": "No replay is written: {why}.",
    "no-replay-to-this-file": "{file}: no replay is written: {why}",
    "leaves-work-out": (
        "it takes less than the {busy_ns:micro} µs in which the device works on a step: it leaves work out"
    ),
    # What is told while it runs.
    "step-takes-long": (
        "a step takes {step_s:.2g} s, so its times take up to {minutes:count minute}, longer than --seconds "
        "{seconds:g}; Ctrl-C ends early and keeps the profile"
    ),
    "waited-for-another-run": "waited {seconds:.0f} s for another run; --seconds does not count this",
    # What a replay for Perfetto calls its parts.
    "end-of-step": "the end of the step",
    "queue-is-full": "the queue is full",
    # What a budget of launches and synchronisations counts.
    "operations-that-launch": (
        "operations of this thread that start a kernel on a GPU; those of other threads are not counted"
    ),
    "operations-and-reads-that-wait": (
        "operations of this thread that wait for a GPU, and reads such as item() in all threads; other waits of other "
        "threads are not counted"
    ),
    "runtime-calls-that-launch": "calls of the CUDA runtime that start kernels or graphs, in all threads",
    "runtime-calls-that-wait": "calls of the CUDA runtime that wait, in all threads",
    "only-pytorch-is-counted": "only PyTorch is counted, and torch does not import: {error}",
    "no-runtime-call-seen": "the profiler saw no call of the CUDA runtime; it may not be allowed to (CUPTI)",
    # Ranks beside each other.
    "no-step-in-all-traces": ("Ranks cannot be compared: no step is in all traces, by the numbers of their marks."),
    "no-collective-in-all-traces": "Ranks cannot be compared: no collective is in all traces.",
    "ranks-differ-in-collectives": (
        "Ranks cannot be compared: no collective is in all traces; the ranks have different ones, or other process "
        "groups."
    ),
    "collectives-left-out": (
        "{collectives:,} collectives are left out: the ranks have different numbers of them, or other groups."
    ),
    "no-rank-is-late": "No rank is clearly late in the collectives that are in all traces.",
    "rank-is-late": (
        "Rank {rank} is late: {share:percent} of the time that ranks wait in collectives is for it. The others wait "
        "{waited_ns:micro} µs a step for it. Its host works {host_ns:micro} µs longer than theirs, its device "
        "{device_ns:micro} µs."
    ),
    "longer-step": ("A step of rank {rank} takes {step_ns:micro} µs, {times:factor} that of the others."),
    "longer-step-of-the-host": (
        "A step of rank {rank} takes {step_ns:micro} µs, {times:factor} that of the others: its host works longer."
    ),
    "longer-step-of-the-device": (
        "A step of rank {rank} takes {step_ns:micro} µs, {times:factor} that of the others: its device works longer."
    ),
    "longer-step-of-host-and-device": (
        "A step of rank {rank} takes {step_ns:micro} µs, {times:factor} that of the others: its host and its device "
        "works longer."
    ),
}
