"""What ``overhead`` alone says: what it is for, and what to type first."""

from __future__ import annotations

from overhead.first_steps import FirstSteps

_PURPOSE = "What one more call, kernel launch or dispatch costs, and who takes the time."
_MORE = "All commands: overhead --help. The options of one: overhead time --help."


def first_steps_text(here: FirstSteps) -> str:
    """What ``overhead`` alone prints: five questions, each with a command that answers it on this
    machine. ``here``: which library is installed, and whether there is a GPU.
    """
    setup, change = _statement(here)  # what prepares the call of the example, and the call
    answers = {
        "What does this call cost?": f'overhead time "{change}" -s "{setup}"',
        "Is a program host-bound or device-bound?"
        " (a quick example; for your own: FILE.py:FUNCTION)": (
            "overhead explain overhead.explaining.example:build --no-compile"
        ),
        "What does a launch cost through each GPU stack on this machine?": (
            "overhead run --profile quick"
        ),
        "What if several processes or threads do the same?": (
            f"overhead contention -p {here.library}"
        ),
        "What did the last run find?": "overhead show",
    }
    lines = [_PURPOSE]
    for question, command in answers.items():
        lines += [question, f"    {command}"]
    return "\n".join([*lines, _MORE])


def _statement(here: FirstSteps) -> tuple[str, str]:
    """The setup of a call, and the call."""
    if here.library == "numpy":
        return "import numpy as np; x = np.zeros(256)", "x += 1"
    device = ", device='cuda'" if here.on_gpu else ""
    return f"import torch; x = torch.zeros(256{device})", "x.add_(1)"
