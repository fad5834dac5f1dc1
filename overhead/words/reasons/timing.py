"""The sentences of what a trial and the times of a call tell, and could not tell."""

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
}
