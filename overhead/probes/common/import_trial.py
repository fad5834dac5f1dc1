"""The child process that imports one entry point (its name and value) or one plugin (its path), and
answers why not.
"""

from __future__ import annotations

import contextlib
from importlib.metadata import EntryPoint
from pathlib import Path

from overhead import probes
from overhead.child import Send, serve
from overhead.errors import BadPlugin
from overhead.probes.common.entry_points import GROUP
from overhead.results import Reason, Why


def _answer(arguments: list[str], send: Send) -> None:
    """What this child process does: import what its parent names, and send (by ``send``, to the
    parent) why that fails; '' if it does not. Two arguments are the name and the module of an entry
    point; one is the path of a plugin.
    """
    if len(arguments) == 2:
        name, module = arguments
        # ``GROUP``: under which group packages declare stacks.
        send(probes.load_entry_point(EntryPoint(name, module, GROUP)))
    else:
        send(_why_not(arguments[0]))


def what_is_wrong(error: BadPlugin) -> Why:
    """Why a plugin cannot be used, without its path, which the parent knows. ``load_plugin`` raises
    a reason that consists of the path and the reason proper.
    """
    if isinstance(error.why, Reason):
        # The reason is of the form "PATH: why" (``about``), with these two as its values.
        without_path = error.why.values.get("why")
        if isinstance(without_path, str | Reason):
            return without_path
    # A reason of another form, as its text.
    return str(error)


def _why_not(plugin: str) -> Why:
    """Why the plugin with this path cannot be imported; '' if it can. Its new stacks (probes) are
    asked for their environments too, because a parent process of a run asks for them, and could
    hang or end there.
    """
    probes.allow_entry_points(())  # no other package is imported in this trial
    # A plugin may replace stacks: those count as new too.
    before = probes.registry()
    try:
        probes.load_plugin(Path(plugin))
    except BadPlugin as error:
        return what_is_wrong(error)
    for name, probe in probes.registry().items():
        if probe is not before.get(name):
            with contextlib.suppress(Exception):  # a worker reports it
                probes.environments_of(probe)
    return ""


if __name__ == "__main__":
    serve(list[str], _answer)
