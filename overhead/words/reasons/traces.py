"""The sentences of what a recorded trace lacks."""

from __future__ import annotations

TEMPLATES = {
    # Why a recording allows no verdict.
    "many-events-backwards": "{backwards:,} of {events:,} events end before they begin",
    "many-events-unreadable": "{unreadable:,} of {events:,} events cannot be read",
    "times-rounded": "the times of the recording are rounded to {rounded_ns:time}",
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
    "migrations-take-steps": (
        "{pieces:,} copies of managed memory, which no call issues, take {share:percent} of the"
        " time of the steps while nothing else runs on the device, and the CPU may wait for them"
    ),
    "recording-ends-before-work": (
        "the recording ends before the work of {lost:,} of {launches:,} launches ({share:percent})"
        " begins"
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
        "in {waits:count wait} ({share:percent} of the time of the steps) the CPU waited for the"
        " device, but no recorded work ended then: either device work was not recorded, or the"
        " clocks of CPU and device differ"
    ),
    "threads-side-by-side": (
        "for {share:percent} of the time of the steps one thread waits for the device while another"
        " one runs operations, and threads that work at the same time cannot be told apart"
    ),
    "clocks-contradict": (
        "the times of CPU and device contradict each other by {wrong_ns:time}: a clock may have"
        " jumped"
    ),
    "many-times-contradict": (
        "{pieces:,} of {launches:,} pieces of device work began before the call that issued them,"
        " or ended after the wait for them"
    ),
    "too-little-device-work": (
        "the steps hold {pieces:count piece} of device work in all, which is too little for a"
        " verdict; record more of the program"
    ),
    "times-too-short": (
        "the longest step takes {step_ns:length}, and no launch of a device is so short"
    ),
    "file-is-cut": "the file ends in the middle, so an unknown part of the recording is missing",
    # What was taken as a step.
    "steps-are-ranges": "A step is {name:plain 120}: {steps:count mark}.",
    "steps-are-ranges-in-turn": (
        "No steps are marked. A step is from one start of {name:plain 200} to the next:"
        " {steps:count step}."
    ),
    "steps-are-launches-in-turn": (
        "No steps are marked. A sequence of {launches:count kernel launch/kernel launches} repeats,"
        " and each repetition counts as a step: {steps:count step}."
    ),
    "steps-are-single-launches": (
        "No steps are marked. Each launch of a kernel, until the next one, counts as a step:"
        " {steps:count step}."
    ),
    "steps-may-be-parts": (
        "A repetition may also be a part of a step, such as a layer of a model or one turn of a"
        " loop in it: nothing in the recording tells the two apart."
    ),
    "step-between-times": "A step is what lies between --from and --to: {step_ns:length}.",
    "step-of-all-launches": (
        "No steps are marked, and none were found. {step_ns:length} of the recording of"
        " {recorded_ns:length} count as one step, from the operation of the first launch to the"
        " last device work."
    ),
    "step-of-all": (
        "No steps are marked, and none were found. The whole recording of {recorded_ns:length}"
        " counts as one step."
    ),
    "steps-last-until-the-next": (
        "The program also launches work after a mark, so a step lasts until the next mark."
    ),
    "steps-leave-out": "Left out: {parts}.",
    "first-call": "the first call of {operation:plain 60} ({took_ns:length}), which is start-up",
    "time-before-steps": "{ns:length} before the first step",
    "time-between-steps": "{ns:length} between the steps",
    "between-steps-bounds": (
        "The time between the steps bounds this program: {each_ns:length} for each step, in which"
        " the device is idle. This is {share:percent} of the time from the first step to the last."
        "{most} What follows is of the steps alone."
    ),
    "between-steps-costs": (
        "Between the steps, the device is idle for {each_ns:length} for each step. This is"
        " {share:percent} of the time from the first step to the last.{most} What follows is of the"
        " steps alone."
    ),
    "most-between-steps": " The longest range there is {name:plain 80}, with {ns:length}.",
    "time-after-steps": "{ns:length} after the last step",
    "launches-outside-of-steps": (
        "{share:percent} of the launches and copies, which are in no step"
    ),
    "slow-first-step": (
        "the first step, which takes {longest_ns:length} (the others {usual_ns:length}): it may"
        " compile or load"
    ),
    "slow-first-steps": (
        "the first {steps:count step}, which take {shortest_ns:length} to {longest_ns:length} (the"
        " others {usual_ns:length}): they may compile or load"
    ),
    "slow-step": "one step, which takes {longest_ns:length} (the others {usual_ns:length})",
    "slow-step-of-number": (
        "step {number}, which takes {longest_ns:length} (the others {usual_ns:length})"
    ),
    "slow-steps-of-many": (
        "{steps:count step}, which take {shortest_ns:length} to {longest_ns:length} (the others"
        " {usual_ns:length})"
    ),
    "steps-without-work": "{steps:count step} without device work",
    "times-are-of-the-second": "All times are of the second of these.",
    "times-are-means-after-the-first": (
        "All times are means of the {steps:count step} after the first of these."
    ),
    "steps-vary": (
        "The steps vary: they take {shortest_ns:length} to {longest_ns:length} on the CPU."
    ),
    "device-already-busy": (
        "When the first step begins, the device is still busy with earlier work. This makes the"
        " step {earlier_ns:time} longer, which is left out."
    ),
    "device-runs-behind": (
        "The device works for {behind_ns:length} after the last step has ended on the CPU. The time"
        " of a step is counted from the end of its device work to the end of that of the next step."
    ),
    "device-ends-later": (
        "The device works for {behind_ns:length} after the step has ended on the CPU. This work is"
        " part of the step."
    ),
    "other-ranges-repeat": (
        "Other ranges that repeat: {ranges}. To take one of them as the step: --step NAME."
    ),
    "range-that-repeats": "{name:plain 60} ({times:,}×)",
    "how-to-mark-steps": (
        "To mark steps, call profiler.step(), or use NVTX ranges named step 1, step 2. To choose a"
        " part: --from and --to, in seconds since the recording began."
    ),
    # What a recording does not show, or shows only in part.
    "profiler-holds-up-calls": (
        "The profiler itself delays calls for {share:percent} of the time of the steps. This counts"
        " as CPU work here."
    ),
    "stacks-recorded": (
        "The profiler also recorded each Python call (with_stack=True), which takes CPU time in"
        " every step: record without it."
    ),
    "wait-for-earlier-work-left-out": (
        "Left out: a wait of {waited_ns:length} at the beginning, for work that was issued before"
        " the recording."
    ),
    "device-clock-apart": (
        "The device's clock is about {apart_ns:time} {side} against the CPU's. Launches and"
        " waits were used to correct this."
    ),
    "clock-of-one-device-apart": (
        "The clock of device {device} is about {apart_ns:time} {side} against the CPU's."
        " Launches and waits were used to correct this."
    ),
    "clock-of-one-device-drifts": (
        "The clock of device {device} is about {apart_ns:time} {side} against the CPU's, and"
        " drifts by {drift_us:,.0f} µs a second. Launches and waits were used to correct this."
    ),
    "device-clock-drifts": (
        "The device's clock is about {apart_ns:time} {side} against the CPU's, and drifts by"
        " {drift_us:,.0f} µs a second. Launches and waits were used to correct this."
    ),
    "managed-memory-moves": (
        "Managed memory moves between CPU and device for {share:percent} of the time of the steps;"
        " kernels and the CPU wait for it in page faults. cudaMemPrefetchAsync moves it before they"
        " need it."
    ),
    "migrations-beside": (
        "The device moves managed memory in {pieces:count copy/copies}, for {share:percent} of the"
        " time of the steps. No call issues these copies, so they do not count as work here."
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
    "report-exported-by-nsys": (
        "The report was exported by nsys, which is installed here, into a folder that is removed."
    ),
    "tables-not-read": "Not read of the database: {tables}.",
    "events-mended": (
        "{events:count event} of the file are not valid JSON, such as by a quote in a name; they"
        " were read."
    ),
    "launches-without-work": (
        "{lost:,} of {launches:,} launches have no device work in this recording."
    ),
    "copies-without-work": (
        "{lost:,} of {copies:,} copies and fills have no device work in this recording."
    ),
    "nodes-missing": "Replays of one graph differ: {missing:,} of their kernels are missing.",
    "waits-unexplained": (
        "In {waits:count wait} ({share:share} of the time of the steps) the CPU waited for the"
        " device, but no recorded work ended then."
    ),
    "times-contradict": (
        "{pieces:count piece} of device work with times that contradict all others."
    ),
    # Why the steps that a person names are not there.
    "no-such-range": "no range is called {name:plain 80}; ranges that repeat: {ranges}",
    "no-such-range-and-none-repeats": (
        "no range is called {name:plain 80}, and no range of the program repeats"
    ),
    "no-such-time": "the recording ends after {recorded_ns:length}, which is before --from",
    "no-launch-between": (
        "no launch is between --from and --to; the first one is at {first_s:.6f} s of the"
        " recording, and the last one at {last_s:.6f} s"
    ),
    # Why a file of a trace is not enough.
    "trace-of-one-half": (
        "{file}: this trace has no device work that a call launched: {why}; {again}"
    ),
    "calls-not-recorded": "its calls were not recorded",
    "record-with-pytorch": "record both (ProfilerActivity.CPU and ProfilerActivity.CUDA)",
    "record-with-nsight": (
        "record the program with nsys profile --trace cuda,nvtx, and nsys export --type sqlite"
    ),
    "trace-of-launches-alone": (
        "{file}: this trace has {launches:,} launches and no device work; {again}"
    ),
    "export-of-launches-alone": (
        "{file}: an export of Nsight Systems with {launches:,} launches and no kernels or copies,"
        " such as of a release that is older than the driver; {again}"
    ),
    "trace-of-profiler-range": (
        "{file}: a trace of CUPTI's counters (cuda_profiler_range), which has no times of kernels;"
        " record the program without experimental_config"
    ),
    "trace-of-calls-alone": (
        "{file}: this trace has {calls:count runtime call}, and no launch, no device work and no"
        " operations; record the part of the program that launches kernels"
    ),
    "trace-without-device-work": (
        "{file}: this trace has no device work that a call launched, and no operations of the CPU"
        " in its steps; {again}"
    ),
}
