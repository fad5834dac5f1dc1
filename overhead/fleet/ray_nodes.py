"""Measure the nodes of a Ray cluster: one task a node, which gets all GPUs of that node."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from overhead.child import last_line
from overhead.errors import UsageError, message_of, require_extra
from overhead.fleet.collecting import END_S, Measure, Sent, run_program
from overhead.runner.output import folder_name

COMMAND = '"$OVERHEAD_PYTHON" -m overhead'
"""How the shell of a node calls overhead: with the Python of Ray's workers."""
_ORDERLY = (1, 4)
"""Ray's reasons for the end of a node that somebody stopped, and of an idle one that the autoscaler
stopped.
"""


@contextlib.contextmanager
def ray_nodes(address: str | None, script: str, limit_s: float) -> Iterator[Mapping[str, Measure]]:
    """A ``with`` block that connects to a Ray cluster and gives, by the name of each node, a
    function that measures it. ``script``: what a node runs, for ``limit_s`` seconds.

    ``address``: None for the cluster that Ray finds. Raises ``UsageError``.
    """
    require_extra("ray", "ray")
    # Ray shall not report its use to its makers.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Each retry takes 40 s where there is no cluster.
    os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "1")
    import ray

    # Ray replaces the handler of SIGTERM: it is put back.
    before = signal.getsignal(signal.SIGTERM)
    with contextlib.redirect_stdout(sys.stderr):  # Ray prints what happens to nodes
        try:
            ray.init(address or "auto", log_to_driver=False, logging_level="ERROR")
        except (OSError, RuntimeError, ValueError) as error:
            raise UsageError(f"--ray: {message_of(error)}") from None
        signal.signal(signal.SIGTERM, before)  # Ray has replaced it
        try:
            measures = {}
            for name, node in _nodes().items():
                # ``END_S``, 20 s: time for the script to end and to send the files.
                measures[name] = functools.partial(_measure, node, script, limit_s + END_S)
            yield measures
        finally:
            ray.shutdown()


def _nodes() -> dict[str, dict[str, Any]]:
    """The nodes of the cluster by name: first the living, then those that died and were not
    replaced, since a node that crashed must be seen. Nodes that somebody or the autoscaler stopped
    are left out.
    """
    import ray

    nodes = ray.nodes()
    living = [node for node in nodes if node["Alive"]]
    dead = [node for node in nodes if not node["Alive"]]
    by_name: dict[str, dict[str, Any]] = {}
    for node in living:
        name = _name_of(node)
        if name in by_name:  # two nodes on one machine
            name = f"{name}-{node['NodeID'][:6]}"
        by_name[name] = node
    for node in dead:
        # A dead node under the name of a living one was replaced. ``_ORDERLY``: somebody or the
        # autoscaler stopped it.
        if node["DeathReason"] not in _ORDERLY:
            by_name.setdefault(_name_of(node), node)
    return by_name


def _name_of(node: Mapping[str, Any]) -> str:
    """The name that somebody gave the node, or else that of its machine, as the name of a
    folder. Ray names a node by its address if nobody did.
    """
    if node["NodeName"] != node["NodeManagerAddress"]:
        return folder_name(node["NodeName"])
    return folder_name(node["NodeManagerHostname"].partition(".")[0])


async def _measure(node: Mapping[str, Any], script: str, limit_s: float) -> Sent:
    """Run the script on one node, as a task of Ray that has all GPUs of the node, so that no other
    task disturbs it; return what it sent. Raises ``UsageError`` with the reason if the node is
    dead, fails or does not answer in time. ``limit_s``: of the script, sending the files included.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    if not node["Alive"]:
        raise UsageError(f"dead: {node['DeathReasonMessage']}")
    gpus = node["Resources"].get("GPU", 0)
    # ``soft=False``: on no other node, even if this one is not free.
    here = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
    # On this node only, with all of its GPUs, and once. With 0 CPUs it starts even if other tasks
    # have all of them.
    options = {"num_cpus": 0, "num_gpus": gpus, "max_retries": 0, "scheduling_strategy": here}
    task = ray.remote(**options)(_script).remote(script, limit_s)
    answer = asyncio.wrap_future(task.future())
    try:
        # 20 s longer than the script itself may take (``END_S`` again): Ray must start the task.
        await asyncio.wait([answer], timeout=limit_s + END_S)
        if answer.done():
            sent: Sent = answer.result()
            return sent
    except ray.exceptions.RayError as error:
        # The first sentence of the last line says what happened.
        raise UsageError(last_line(str(error)).partition(". ")[0]) from None
    finally:
        ray.cancel(task)
        # The task has 5 s to kill the script; whatever it raises then does not matter.
        await asyncio.gather(asyncio.wait_for(answer, 5.0), return_exceptions=True)
    waited_s = limit_s + END_S
    raise UsageError(f"no answer within {waited_s:g} s: it hangs, or another task has its GPUs")


def _script(script: str, limit_s: float) -> Sent:
    """What the task of Ray does on a node: run the script in a temporary folder, with the Python of
    Ray's workers, and return what it sends. A task that is cancelled kills the script.
    """

    async def run() -> Sent:
        task = asyncio.current_task()
        assert task is not None
        # ray.cancel sends SIGINT: the script is then killed, and does not go on measuring.
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
        return await run_program(["sh", "-c", script], limit_s)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # The script makes its folder in TMPDIR, and calls overhead by ``OVERHEAD_PYTHON``.
        os.environ.update(TMPDIR=folder, OVERHEAD_PYTHON=sys.executable)
        return asyncio.run(run())
