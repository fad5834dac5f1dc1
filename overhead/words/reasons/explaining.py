"""Sentences of what bounds a step, and of what would change it."""

from __future__ import annotations

TEMPLATES = {
    # Why a figure is missing, and what things are called.
    "not-in-a-trace": "a trace does not show this time",
    "no-step-was-profiled": "no step was profiled",
    "no-work-on-a-device": "no work on a GPU was seen",
    "calls-of-other-device": "the device work of the category {category:plain 60} is not read",
    "no-time-measured": "no time was measured",
    "from-pageable-memory": "{what} from pageable memory",
    # Whether an alternative computes the same.
    "other-results": "other results",
    "results-not-compared": "results were not compared",
    "same-results-not-counted": "same results",
    "same-results": "same results ({compared:count value} compared)",
    "same-results-in-part": "same results ({compared:,} of {whole:,} values compared)",
    # The time of a step.
    "untold-time": "{why:capital}.",
    "not-told-from-zero": "the time cannot be told from zero",
    "not-told-from-zero-at-most": (
        "the time cannot be told from zero; it is at most {most_ns:micro} µs"
    ),
    "busy-in-the-profile": "from the profile; in brackets the shortest and the longest step",
    "recorded-with-the-profiler": "recorded with the profiler",
    "more-steps-took-no-longer": (
        "many steps took no longer than few, so the time without the profiler is not known"
    ),
    "interrupted-before": "interrupted before it was measured",
    "no-device-in-the-step": "no GPU takes part",
    "step-time-has-two-speeds": (
        "the time of a step has two speeds, {lower_ns:micro-spread} and {higher_ns:micro-spread} µs"
    ),
    "step-time-not-resolved": "the time of a step is too uncertain{step_ns:micro-interval}",
    "return-time-has-two-speeds": (
        "the time until the step returns has two speeds, {lower_ns:micro-spread} and"
        " {higher_ns:micro-spread} µs"
    ),
    "return-time-not-resolved": (
        "the time until the step returns is too uncertain{step_ns:micro-interval}"
    ),
    "step-as-it-runs": "Unpinned, a step takes {met_ns:micro-spread} µs{processes:in-processes}.",
    "step-as-it-runs-is-apart": (
        "Unpinned, a step takes {met_ns:micro-spread} µs{processes:in-processes}: {times:factor}"
        " its undisturbed {wall_ns:micro} µs."
    ),
    "step-as-it-runs-not-resolved": (
        "The unpinned time of a step is too uncertain: some steps take far longer than most."
    ),
    "step-measured-so": "A step took {step_ns:micro-spread} µs, {how}.",
    "slow-steps": (
        "Some steps are slow: the mean of all is {mean_ns:micro-spread} µs, {times:factor} the"
        " {wall_ns:micro} µs of most steps."
    ),
    "mean-is-apart": (
        "The mean of all measured steps is {mean_ns:micro-spread} µs, {times:factor} the"
        " {wall_ns:micro} µs of an undisturbed one."
    ),
    # What on the host makes steps long or uneven.
    "no-cause-on-the-host": (
        "Nothing was found on the CPU that makes the times of the steps differ: no other programs,"
        " CPU limits or garbage collection. overhead doctor checks the rest of this machine."
    ),
    "waits-for-a-processor": (
        "For {share:percent} of the time the step's thread waits for a CPU core ({preemptions:,.0f}"
        " switches per second): stop other programs, or give this program CPU cores of its own."
    ),
    "stopped-by-the-cpu-limit": (
        "For {share:percent} of the time the CPU limit of {cores:g} cores stops the step's thread:"
        " raise the limit, or use fewer threads."
    ),
    "collects-garbage": (
        "For {share:percent} of the time Python collects garbage (pauses of up to {pause_ns:micro}"
        " µs)."
    ),
    "collects-garbage-freeze-it": (
        "For {share:percent} of the time Python collects garbage (pauses of up to {pause_ns:micro}"
        " µs): call gc.freeze() after loading, then gc.disable()."
    ),
    "more-threads-than-cores": (
        "PyTorch uses {threads:g} threads on {cores:g} cores: torch.set_num_threads({most}) may be"
        " faster."
    ),
    "slow-test-loop": (
        "The reference loop takes {times:factor} its best time: the CPU runs at a lower clock"
        " frequency, or another program uses the same core."
    ),
    "other-python-threads": (
        "{threads:count other Python thread} {threads:verb} busy and may hold the interpreter's"
        " lock: move that work to another process."
    ),
    "gpu-in-another-node": (
        "The CPU core that launches is in another NUMA node than the GPU: try numactl"
        " --cpunodebind."
    ),
    # What a step is measured under.
    "as-the-host-runs-it": "the step, as usual",
    "without-collection": "without garbage collection",
    "on-one-core": "bound to one core",
    "beside-busy-processes": "while {number} other processes are busy",
    "switching-threads-often": "with frequent thread switches",
    "one-library-thread": "with one thread of the library",
    # What alternatives gain.
    "large-gain": "Faster, measured: {name}, {gain:factor-spread} as fast{results:more}.",
    "large-gain-is-a-bound": (
        "At most this is possible, measured: {name}, {gain:factor-spread} as fast."
    ),
    "large-gain-is-predicted": "Predicted: {name}, {gain:factor-spread} as fast.",
    "synchronisations-do-not-bound": (
        "Synchronisations do not limit the step: without them it was {gain:factor-spread} as fast"
        " when measured, and the profile predicts {predicted:factor}."
    ),
    "host-work-does-not-bound": (
        "The step is not host-bound: a CUDA graph saves almost all CPU work, and the step is only"
        " {gain:factor-spread} as fast."
    ),
    "not-by-the-device-alone": (
        "The device is not the only limit: with a CUDA graph the step is {gain:factor-spread} as"
        " fast."
    ),
    # Whether there is a verdict.
    "no-verdict": "No verdict: {why}.",
    "no-verdict-without-a-check": (
        "No verdict: the profile could not be checked against a measurement ({why})."
    ),
    "no-verdict-of-the-replay": (
        "No verdict on what bounds the step: by the profile a step takes {replayed_ns:time}, and"
        " without the profiler {measured_ns:time} were measured. The difference of {apart_ns:time}"
        " is more than overhead allows (15 %)."
    ),
    "no-verdict-of-the-recording": (
        "No verdict on what bounds the step: a step was recorded with {measured_ns:time}, and the"
        " work and waits in it account for {replayed_ns:time}. The difference of {apart_ns:time} is"
        " more than overhead allows (15 %)."
    ),
    "device-works-as-recorded": (
        "The device works for {device_ns:time} of the {step_ns:time} of a recorded step"
        " ({share:share})."
    ),
    "longest-wait-as-recorded": (
        "Most waiting is in {what}: {longest_ns:time} in {calls:count call}."
    ),
    "device-bound-as-recorded": (
        "Device-bound: the device works for {device_ns:time} of the {step_ns:time} of a recorded"
        " step ({share:share})."
    ),
    "device-works-in-the-step": (
        "The device works for {busy_ns:micro} µs of each step, about {share:percent} of a step of "
        "{wall_ns:micro-spread} µs. Faster kernels can save no more than that."
    ),
    "calls-that-wait": "{number:count call} in each step {number:wait} for the device: {lines}.",
    "waits-at-line": "{line} ({what:short})",
    "waits-at-no-line": "{what:short}",
    "no-verdict-of-the-profile": (
        "No verdict: the profile does not explain the time of the step ({why})."
    ),
    "replay-takes-another-time": (
        "the profile gives {ratio:factor} the measured time; a difference of {allowed:percent} is"
        " allowed"
    ),
    "replay-unchecked": (
        "All times contain the cost of the profiler, most of it on the CPU. To check them, give the"
        " time of a step without a profiler: --step-ms MS."
    ),
    # What bounds a profiled step.
    "takes-host-and-device": (
        "In the profile, a step takes {host_ns:time} on the CPU and {device_ns:time} on the device."
    ),
    "host-bound": (
        "Host-bound: in the profile, a step takes {host_ns:time} on the CPU and {device_ns:time} on"
        " the device, {times:factor-or-many} less."
    ),
    "device-bound": (
        "Device-bound: in the profile, a step takes {host_ns:time} on the CPU and {device_ns:time}"
        " on the device, {times:factor-or-many} more."
    ),
    "bound-by-synchronisation": (
        "Bound by synchronisation: in the profile, a step takes {step_ns:time}. Predicted: without"
        " its synchronisations at best {without_waits_ns:time}, {times:factor-or-many} as fast."
    ),
    "mixed": (
        "Mixed: in the profile, a step takes {host_ns:time} on the CPU and {device_ns:time} on the"
        " device. The step becomes much faster only if both become faster."
    ),
    "mixed-without-synchronisations-host": (
        "Mixed: in the profile, a step takes {host_ns:time} on the CPU and {device_ns:time} on the"
        " device. Synchronisations cost {share:percent} of the step; without them the step would be"
        " host-bound."
    ),
    "mixed-without-synchronisations-device": (
        "Mixed: in the profile, a step takes {host_ns:time} on the CPU and {device_ns:time} on the"
        " device. Synchronisations cost {share:percent} of the step; without them the step would be"
        " device-bound."
    ),
    "device-bound-in-turn": (
        "Device-bound by {devices} devices that work in turn: in a step of {step_ns:time} no device"
        " works for more than {busy:share}, but at least one of them for {together:share}."
    ),
    "copies-take-the-device": (
        "Copies take {share:percent} of the device's time ({copy_ns:time}): copy less, or copy"
        " while the device computes."
    ),
    "pageable-copies-take-the-device": (
        "Copies take {share:percent} of the device's time ({copy_ns:time}), many of them from"
        " pageable memory: pinned memory ({how}) makes them faster, and lets the device compute"
        " meanwhile."
    ),
    "pinned-in-pytorch": "pin_memory() and non_blocking=True",
    "pinned-in-cuda": "cudaHostAlloc and cudaMemcpyAsync",
    # What a change would gain, by the replay.
    "less-host-work-saves-nothing": "Less CPU work would not make it faster.",
    "predicted-gains": "Predicted time of a step: {each}.",
    "predicted-with-graphs": (
        "at best {predicted_ns:time} with its launches in {runtime} graphs ({saves:share} less)"
    ),
    "predicted-with-half-the-host": (
        "{predicted_ns:time} with half the CPU work ({saves:share} less)"
    ),
    "fewer-launches-save-little": (
        "{runtime} graphs would save less than {percent} % of the step."
    ),
    "device-is-idle": "The device is idle for {share:share} of a step (GPU idle).",
    "host-work-for-each-launch": (
        "{launches:count launch/launches} in each step: the operations that launch take"
        " {each_ns:time} of CPU time per launch."
    ),
    "most-host-time": (
        "The operation with most CPU time is {name}{line:at}: {host_ns:time} in {calls:count call}."
    ),
    # Where the host's time goes in a trace.
    "host-time-goes-to": "Of {whole_ns:time} of CPU work, {parts}.",
    "host-time-in-launching-operations": (
        "{part_ns:time} ({share:share}) is in operations that launch"
    ),
    "host-time-in-other-operations": (
        "{part_ns:time} ({share:share}) is in operations that launch nothing"
    ),
    "host-time-in-operations": "{part_ns:time} ({share:share}) is in operations",
    "host-time-in-data-loading": "{part_ns:time} ({share:share}) is in the DataLoader's next()",
    "host-time-waiting-for-workers": (
        "{part_ns:time} ({share:share}) is in the DataLoader's next(), which waits for its workers"
    ),
    "host-time-between-operations": "{part_ns:time} ({share:share}) is between operations",
    "host-time-in-ranges": (
        "{part_ns:time} ({share:share}) is in ranges, outside of the operations that these hold"
    ),
    "host-time-in-unnamed-code": (
        "{part_ns:time} ({share:share}) is between operations, in code without a range of its own"
        " (such as Python)"
    ),
    "runtime-calls-take": "Runtime calls with most CPU time in a step: {each}.",
    "runtime-call-takes": "{call:short} {call_ns:time} ({share:percent}) in {calls:count call}",
    "allocate-once": (
        "Allocating and freeing take {share:percent} of the CPU work: allocate once, and use the"
        " memory again."
    ),
    "range-holds-operations": (
        "{name:short} is a range around other operations; outside of them it takes {own_ns:time} of"
        " CPU time."
    ),
    # Start-up in a trace.
    "recording-is-start-up": (
        "Start-up, not a usual step: {start_up_ns:time} of {whole_ns:time} of CPU work"
        " ({share:share}) are {kinds}. To explain a step, record later ones, after a warm-up."
    ),
    "start-up-in-the-step": (
        "{start_up_ns:time} of {whole_ns:time} of CPU work ({share:percent}) are start-up, which"
        " later steps do not have: {kinds}."
    ),
    "start-up-loads": "loading of code ({part_ns:time})",
    "start-up-first-launches": "slow first launches, which load kernels ({part_ns:time})",
    "start-up-compiles": "compilation ({part_ns:time})",
    "start-up-first-calls": "first calls of operations ({part_ns:time})",
    "start-up-sets-up": "set-up of the device and of libraries ({part_ns:time})",
    "start-up-until-loaded": "work until the last kernel is loaded ({part_ns:time})",
    "start-up-captures": "the capture of graphs ({part_ns:time})",
    "bound-by-data-loader": (
        "Bound by the DataLoader (waits for its workers): in the profile, a step takes"
        " {host_ns:time} on the CPU, with {waits_ns:time} of such waits, and {device_ns:time} on"
        " the device. More workers (num_workers), a larger prefetch_factor or less work for each"
        " sample may help."
    ),
    "data-loader": "The DataLoader's next() takes {share:percent} of the CPU time of a step.",
    "pageable-uploads": (
        "Copies to the device from pageable memory ({count:.4g} in each step) block the CPU for"
        " {blocked_ns:time}{line:at}: pinned memory (in PyTorch, pin_memory() and"
        " non_blocking=True) may avoid that."
    ),
    "pageable-uploads-pinned": (
        "Copies to the device from pageable memory ({count:.4g} in each step) block the CPU for"
        " {blocked_ns:time}{line:at}. With pin_memory() and non_blocking=True the step was"
        " {gain:factor-spread} as fast."
    ),
    "synchronisations-measured": (
        "{number:count synchronisation} in each step. Without them the step was"
        " {gain:factor-spread} as fast. The longest wait is in {what}{line:at}:"
        " {longest_ns:micro} µs."
    ),
    "synchronisations-replayed": (
        "Without its {number:count synchronisation}, the step would be {share:percent} shorter"
        " (predicted). Most waiting is in {what}{line:at}: {longest_ns:time}"
        " in {calls:count call}."
    ),
    "own-python": (
        "{own_ns:time} of {whole_ns:time} of CPU work are your own Python code, between operations."
    ),
    "between-the-operations": (
        "{outside_ns:time} of {whole_ns:time} of CPU work are between PyTorch's operations:"
        " your own Python code, Python code of libraries, and kernels that they launch."
    ),
    # What bounds a step of the processor, and one without a profile.
    "no-device-takes-part": "No GPU takes part: a step is work on the CPU.",
    "no-device-takes-part-in-a-time": (
        "No GPU takes part: a step is {wall_ns:micro-spread} µs of work on the CPU."
    ),
    "kernels-inside-operations": (
        "On the CPU, an operation contains its own arithmetic, so its overhead is not known."
    ),
    "all-in-the-calling-thread": (
        "The step is {wall_ns:micro-spread} µs of work in the calling thread, and returns when its"
        " work is done."
    ),
    "in-the-calling-thread": "The step is {wall_ns:micro-spread} µs of work in the calling thread.",
    "other-threads-ran": (
        "Other threads of the process ran for {share:percent} of the time. Work that the step gives"
        " to them and does not wait for is not included."
    ),
    "host-or-synchronisation": (
        "Bound by the CPU or by synchronisation: the step returns after {issue_ns:micro-spread} µs,"
        " and its work is done after {wall_ns:micro-spread} µs."
    ),
    "host-and-waits-are-not-told-apart": (
        "Which of the two bounds the step cannot be told, because this library cannot be profiled."
    ),
    "device-bound-by-times": (
        "Device-bound: the step returns after {issue_ns:micro-spread} µs, and its work is done"
        " after {wall_ns:micro-spread} µs."
    ),
    "bound-by-work-beside": (
        "Bound by work that the library does in other threads: the step returns after"
        " {issue_ns:micro-spread} µs, and its work is done after {wall_ns:micro-spread} µs."
    ),
    "faster-calls-do-not-help": "Faster calls would not make the step faster.",
    # When the device's work starts.
    "launch-latency": (
        "The launch latency is {latency_ns:time} (median; {spread}). It is the time from the begin"
        " of the call to the start of the kernel, in the {found_idle:,} of"
        " {launches:count launch/launches} that found the device idle for 2 µs or longer, without"
        " the first of each kernel{longest:more}."
    ),
    "middle-of-latencies": "10 to 90 %: {low_ns:time} to {high_ns:time}",
    "all-latencies": "{low_ns:time} to {high_ns:time}",
    "longest-latency": "the longest is {latency_ns:time}, at a launch of {kernel}",
    "latency-is-the-call": (
        "The launch call itself takes {call_ns:time}, so this is CPU time and no delay of the"
        " device. A call after a long wait may be slow."
    ),
    "latency-with-unchecked-clocks": (
        "No wait in the recording shows whether the clocks of CPU and device agree, so the launch"
        " latency may be wrong by some µs."
    ),
    "no-launch-latency": "The launch latency is not known: {why}.",
    "few-launches-find-the-device-idle": (
        "it needs at least 5 launches that find the device idle, without the first launch of each"
        " kernel, and there were {found_idle:,}"
    ),
    "latency-not-known-with-clocks-apart": "the clocks of CPU and device seem to differ",
    "latency-between-bounds-of-clocks": (
        "the clocks of CPU and device seem to differ, and it can be {shortest_ns:micro} to"
        " {longest_ns:time}"
    ),
    "launches-queue": (
        "In {queued:,} of {launches:count launch/launches} the device was still busy, so the kernel"
        " had to wait in the queue: it starts {queued_ns:time} after the call"
        " (median){behind_others:more}."
    ),
    "launches-queue-and-hide-the-latency": (
        "In {queued:,} of {launches:count launch/launches} the device was still busy, so the kernel"
        " had to wait in the queue: it starts {queued_ns:time} after the call"
        " (median){behind_others:more}. The queue hides the launch latency: it costs no time."
    ),
    "queue-behind-streams": "in {launches:,} of them it waited for another stream",
    "graph-launch-latency": (
        "A CUDA graph starts {latency_ns:time} after its launch on an idle device (median of"
        " {found_idle:,})."
    ),
    "first-launches-take-long": (
        "{launches:count first launch/first launches} of a kernel, which may load it:"
        " {together_ns:time} from the calls to the starts together. The longest is"
        " {longest_ns:time}, for {kernel}."
    ),
    # What is missing.
    "not-profiled": "Launches, synchronisations, operations and gaps are not known: {why}.",
    "no-device-work-to-see": (
        "No work on a GPU was seen, so there are no launches, synchronisations and gaps."
    ),
    "waits-of-streams-from-times": (
        "The step uses several streams. The profile does not record which stream waits for which,"
        " so overhead guesses it from the times."
    ),
    "steps-of-other-operations": (
        "{unknown} of {steps:count profiled step} run other operations than the steps that were"
        " profiled without CUPTI. Their CPU times contain what CUPTI adds."
    ),
    "sites-missing": "{why:capital}.",
    "values-not-checked-while-timed": (
        "What the step computes is not checked while it is timed: look at its result once."
    ),
    "interrupted": (
        "Interrupted: the times of the step and the alternatives are missing. Run again to measure"
        " them."
    ),
    "interrupted-later": (
        "Interrupted: the step under other conditions, or a longer measurement of it, is missing."
        " Run again to measure it."
    ),
    "no-time-for-conditions": (
        "The step was not measured under other conditions, because no time was left; use a larger"
        " --seconds."
    ),
    "conditions-failed": "The step could not be measured under other conditions: {error}.",
    "no-replay": "The timeline for Perfetto is not written: {why}.",
    "no-replay-to-this-file": "{file}: the timeline for Perfetto is not written: {why}",
    "leaves-work-out": (
        "this graph takes less than the {busy_ns:time} for which the device works in a step, so"
        " it leaves out work"
    ),
    # What is told while it runs.
    "step-takes-long": (
        "a step takes {step_s:.2g} s, so measuring it takes up to {minutes:count minute}, longer"
        " than --seconds {seconds:g}; Ctrl-C ends early and keeps the profile"
    ),
    "calling-the-function": "calling the function",
    "start-takes-long": (
        "the function has run for {seconds:.0f} s: if it runs a whole program, press Ctrl-C and"
        " name a function that returns one iteration, step(); see docs/explain.md"
    ),
    "waited-for-another-run": (
        "waited {seconds:.0f} s for another run; --seconds does not count this"
    ),
    # What a replay for Perfetto calls its parts.
    "end-of-step": "the end of the step",
    "queue-is-full": "the queue is full",
    # What a budget of launches and synchronisations counts.
    "operations-that-launch": (
        "operations of this thread that start a kernel on a GPU; other threads are not counted"
    ),
    "operations-and-reads-that-wait": (
        "operations of this thread that wait for a GPU, and reads such as item() in all threads;"
        " other waits of other threads are not counted"
    ),
    "runtime-calls-that-launch": (
        "calls of the CUDA runtime that start kernels or graphs, in all threads"
    ),
    "runtime-calls-that-wait": "calls of the CUDA runtime that wait, in all threads",
    "only-pytorch-is-counted": "only PyTorch is counted, and torch does not import: {error}",
    "no-runtime-call-seen": (
        "the profiler saw no call of the CUDA runtime; the profiler may lack the permission (CUPTI)"
    ),
    # Ranks beside each other.
    "no-step-in-all-traces": "Ranks cannot be compared: no step has the same number in all traces.",
    "no-collective-in-all-traces": (
        "Ranks cannot be compared: the traces have no collective in common."
    ),
    "collectives-are-shifted": (
        "Ranks cannot be compared: the traces begin at different collectives. Mark steps with"
        " profiler.step(), and record the same steps on all ranks."
    ),
    "ranks-differ-in-collectives": (
        "Ranks cannot be compared: the traces have no collective in common. The ranks ran different"
        " ones, or in other process groups."
    ),
    "collectives-left-out": (
        "{collectives:,} collectives are left out: the ranks ran different numbers of them, or in"
        " other groups."
    ),
    "no-rank-is-late": (
        "No rank is clearly late (no straggler) in the collectives that all traces have."
    ),
    "rank-is-late-at-times": (
        "Rank {rank} is late in {late_steps:,} of {steps:count step}. A straggler is late in nearly"
        " all steps."
    ),
    "late-by-host": (
        "Per step, its CPU works {host_ns:time} longer than the CPUs of the other ranks."
    ),
    "late-by-device": (
        "Per step, its device works {device_ns:time} longer than those of the other ranks."
    ),
    "late-by-host-and-device": (
        "Per step, its CPU works {host_ns:time} longer than the CPUs of the other ranks, and"
        " its device {device_ns:time} longer."
    ),
    "late-by-neither": (
        "Neither its CPU nor its device works so much longer than those of the other ranks."
    ),
    "rank-is-late": (
        "Rank {rank} is late (a straggler): {share:percent} of the time that ranks wait in"
        " collectives is for rank {rank}. In each step the other ranks wait {waited_ns:time}"
        " for it. {cause}"
    ),
    "longer-steps": (
        "A step of each of the ranks {ranks} takes about {step_ns:time}, {times:factor} as long as"
        " in the other ranks."
    ),
    "longer-step": (
        "A step of rank {rank} takes {step_ns:time}, {times:factor} as long as in the other ranks."
    ),
    "longer-step-of-the-host": (
        "A step of rank {rank} takes {step_ns:time}, {times:factor} as long as in the other"
        " ranks: the CPU works longer."
    ),
    "longer-step-of-the-device": (
        "A step of rank {rank} takes {step_ns:time}, {times:factor} as long as in the other"
        " ranks: the device works longer."
    ),
    "longer-step-of-host-and-device": (
        "A step of rank {rank} takes {step_ns:time}, {times:factor} as long as in the other"
        " ranks: the CPU and the device work longer."
    ),
}
