"""How a child process ended."""

TEMPLATES = {
    "process-out-of-memory": "out of memory: {gib:.1f} GiB in use",
    "process-silent": "no answer for {limit_s:.0f} s",
    "process-closed-answers": "the process closed the pipe of its answers",
    "process-killed": "killed by {signal}",
    "process-exited": "the process ended with exit code {exit_code}",
    "pipe-of-answers-written": (
        "your code wrote to the pipe that carries the answers; write only to file descriptors that"
        " it has opened"
    ),
}
