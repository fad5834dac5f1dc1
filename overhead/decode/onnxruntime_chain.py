"""The decode workload in ONNX Runtime: a call of ``run_with_iobinding`` per token, with the state
on the device.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import io
import os
import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overhead.decode.chain import DecodeChain, DecodeProgress, StateValues
from overhead.decode.decoders import LOGIT_TOLERANCE, WGSL_LOGIT_TOLERANCE
from overhead.probes.base import Unavailable, Unsupported, Unverified
from overhead.probes.common.availability import import_library
from overhead.probes.workload_chain import verified
from overhead.results import Case, Scalar, Target, because

_MEND = because("install-extras", extras="onnx,torch")
_CPU_PROVIDER = "CPUExecutionProvider"
_WEBGPU_PROVIDER = "WebGpuExecutionProvider"
_LOGITS, _NEXT = "logits", ".next"
_LARGEST_INSIDE = 1024
"""Bytes of the largest tensor that the exported model contains. ONNX Runtime gets larger ones from
memory.
"""


def import_onnxruntime() -> Any:
    """The module onnxruntime without its telemetry. Raises ``Unavailable``."""
    # ``disable_telemetry_events`` comes too late: it leaves a file ``.ses`` in the temporary
    # folder.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    return import_library("onnxruntime", _MEND)


@functools.cache
def webgpu_device() -> Any:
    """The device on which ONNX Runtime's WebGPU provider (its part that runs nodes through WebGPU)
    would run; None if the provider's plugin is not installed or finds no adapter.
    """
    # Without this variable, the EGL of Mesa prints an error for every adapter.
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    with contextlib.suppress(ImportError):
        ort = import_onnxruntime()
        # The plugin is a package of its own, which ONNX Runtime loads as a library.
        import onnxruntime_ep_webgpu as plugin

        # 3: log errors alone, no warnings.
        ort.set_default_logger_severity(3)
        ort.register_execution_provider_library("webgpu", plugin.get_library_path())
        for device in ort.get_ep_devices():
            if device.ep_name == plugin.get_ep_name():
                return device
    return None


def open_case(target: Target, case: Case) -> DecodeChain:
    """A verified chain for the pattern ``per-submit`` or ``read-each``."""
    if case.pattern not in ("per-submit", "read-each"):
        raise Unsupported(because("no-tokens-here", pattern=case.pattern))
    return verified(OnnxDecode(target, case))


@dataclasses.dataclass(frozen=True)
class _ExportedStep:
    """The decode step in ONNX. ``model``: its bytes. ``state``: the names of the tensors of the
    state (token, position, cache), which are its inputs and outputs. ``weights``: tensors that the
    model names but does not contain, by name.
    """

    model: bytes
    state: tuple[str, ...]
    weights: dict[str, NDArray[Any]]


@functools.cache
def _exported(name: str) -> _ExportedStep:
    """The step of the decoder with this name, exported from PyTorch to ONNX. Its state is an input
    and an output, and its large weights are kept outside of the model.

    Raises ``Unavailable`` if PyTorch cannot export, because a package is missing.
    """
    import torch

    from overhead.decode.reference import decode_reference, decode_step

    start = decode_reference(name).after_prompt
    state_names = tuple(start)
    inputs = tuple(torch.from_numpy(start[state_name]) for state_name in state_names)
    outputs = (_LOGITS, *(state_name + _NEXT for state_name in state_names))
    module = _with_state_as_inputs(decode_step(name), state_names)
    try:
        from onnxscript import ir, optimizer

        # The exporter prints its progress.
        with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
            exported = torch.onnx.export(
                module.eval(),
                inputs,
                dynamo=True,
                optimize=False,
                input_names=state_names,
                output_names=outputs,
            )
    # ``_MEND``: what to install.
    except ImportError as error:
        raise Unavailable(because("torch-cannot-export", text=error), _MEND) from error

    model = exported.model
    # The exporter's other optimisations take as long as the export, and ONNX Runtime has its own.
    optimizer.fold_constants(model)
    optimizer.remove_unused_nodes(model)

    # The model refers to each large weight by its name alone, so that no gigabytes are copied into
    # its bytes. Where the weight is in a file, here "weights", does not matter: nobody reads it.
    weights: dict[str, NDArray[Any]] = {}
    for key, value in model.graph.initializers.items():
        tensor = value.const_value
        if tensor.nbytes <= _LARGEST_INSIDE:
            continue
        weights[key] = np.ascontiguousarray(tensor.numpy())
        value.const_value = ir.ExternalTensor(
            "weights", 0, tensor.nbytes, tensor.dtype, shape=tensor.shape, name=key
        )
    return _ExportedStep(ir.to_proto(model).SerializeToString(), state_names, weights)


def _with_state_as_inputs(step: Any, state_names: tuple[str, ...]) -> Any:
    """The step as a module that takes its state and returns the logits and the new state. The step
    itself keeps its state in buffers, but a model in ONNX keeps nothing from call to call.

    ``state_names``: the names of the buffers, in the order in which the module takes and returns
    them.
    """
    import torch

    class Functional(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.step = step

        def forward(self, *state: Any) -> Any:
            given = dict(zip(state_names, state, strict=True))
            tensors = dict(self.step.named_parameters())
            for name, buffer in self.step.named_buffers():
                # A copy, because the step writes into its state, and inputs must stay as they are.
                # Buffers that no step changes, such as angles, are no state.
                tensors[name] = given[name].clone() if name in given else buffer
            # The call puts its results into ``tensors``: the step writes into them in place.
            _, logits = torch.func.functional_call(self.step, tensors, ())
            return (logits, *(tensors[name] for name in state_names))

    return Functional()


@functools.cache
def _session_on(provider: str, name: str) -> Any:
    """The session of ONNX Runtime in which all cases of a process run the decoder with this name.

    ``provider``: what runs its nodes, on the CPU or through WebGPU. Raises ``Unavailable`` if the
    WebGPU provider finds no adapter.
    """
    ort = import_onnxruntime()
    exported = _exported(name)
    options = ort.SessionOptions()
    # The session uses the memory of these arrays, which stay in the cache of ``_exported``.
    weights = [ort.OrtValue.ortvalue_from_numpy(array) for array in exported.weights.values()]
    options.add_external_initializers(list(exported.weights), weights)
    # For ``_nodes``, which counts the nodes of each provider: note which one gets which node.
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if provider == _CPU_PROVIDER:
        # All in the thread that calls, as for PyTorch on the CPU.
        options.intra_op_num_threads = 1
        return ort.InferenceSession(exported.model, options, providers=[_CPU_PROVIDER])
    # ``_MEND``: what to install, such as the plugin of the provider.
    device = webgpu_device()
    if device is None:
        raise Unavailable(because("provider-finds-no-adapter"), _MEND)
    options.add_provider_for_devices([device], {})
    return ort.InferenceSession(exported.model, options)


class OnnxDecode(DecodeChain):
    """A chain of calls of ONNX Runtime, each of which makes one token. A call reads its state
    (token, position, cache) from one set of tensors and writes the new state into a second set. The
    next call goes the other way.
    """

    def __init__(self, target: Target, case: Case) -> None:
        """Get the session, and make two sets of tensors for the state with a binding for each
        direction. Raises ``Unverified`` if most nodes would not run where the target says.
        """
        super().__init__(case)
        self._ort = import_onnxruntime()
        self._on_webgpu = target.api != "CPU"
        provider = _WEBGPU_PROVIDER if self._on_webgpu else _CPU_PROVIDER
        self._device = "webgpu" if self._on_webgpu else "cpu"
        self.tolerance = WGSL_LOGIT_TOLERANCE if self._on_webgpu else LOGIT_TOLERANCE
        # On the CPU a call returns when its work is done, so nothing overlaps with the next call.
        self.synchronous = not self._on_webgpu
        # Does the device work while the CPU issues more? Not where each token is read back either.
        self.overlap = "serial" if self.synchronous or self.latency else "pipelined"

        self._state_names = _exported(case.workload).state
        self._session = _session_on(provider, case.workload)
        self.nodes = _nodes(self._session)
        # ONNX Runtime gives nodes that a provider cannot run to the CPU. With most of them there,
        # the time would not be that of the provider.
        if 2 * self.nodes.get(provider, 0) < sum(self.nodes.values()):
            raise Unverified(
                because("nodes-run-elsewhere", provider=provider, nodes=dict(self.nodes))
            )

        first, second = self._tensors(), self._tensors()
        self._states = [first, second]
        # Of one step: the reference has the shape (steps, batch, vocabulary).
        no_logits = np.zeros(self.reference.logits.shape[1:], np.float32)
        self._logits = self._ort.OrtValue.ortvalue_from_numpy(no_logits, self._device, 0)
        self._bindings = [self._bound(first, second), self._bound(second, first)]
        # The set, and the binding, that the next call reads from: 0 or 1 in turn.
        self._turn = 0

    def _tensors(self) -> dict[str, Any]:
        """A new set of tensors for the state, by name, with the values before the first token."""
        tensors = {}
        for name in self._state_names:
            # A copy, because on the CPU the tensor shares the memory of the array and writes to it.
            values = self.reference.empty[name].copy()
            # The position is on the CPU, where the nodes run that read it; all else on the device.
            place = self._place_of(name)
            tensors[name] = self._ort.OrtValue.ortvalue_from_numpy(values, place, 0)
        return tensors

    def _place_of(self, name: str) -> str:
        """The device that holds this tensor of the state."""
        # A binding copies an input to the device of its node when it is bound, not when it is run.
        # The provider leaves the nodes that read the position to the CPU.
        return "cpu" if name == "position" else self._device

    def _bound(self, before: dict[str, Any], after: dict[str, Any]) -> Any:
        """The inputs and outputs of a call that reads the state from ``before``, a set of tensors,
        and writes the new state into ``after`` and the logits into ``_logits``. They are bound
        once, so that a timed call copies nothing.
        """
        binding = self._session.io_binding()
        binding.bind_ortvalue_output(_LOGITS, self._logits)
        for name in self._state_names:
            binding.bind_ortvalue_input(name, before[name])
            binding.bind_ortvalue_output(name + _NEXT, after[name])
        return binding

    def write_state(self, values: StateValues) -> None:
        """Write these tensors into the set that the next call reads."""
        tensors = self._states[self._turn]
        for name, array in values.items():
            dtype = tensors[name].numpy().dtype
            tensors[name].update_inplace(np.ascontiguousarray(array, dtype))

    def progress(self) -> DecodeProgress:
        """The tokens and the position of the current set, after all issued calls."""
        tensors = self._states[self._turn]
        tokens = tuple(tensors["token"].numpy().tolist())
        return DecodeProgress(tokens, int(tensors["position"].numpy()[0]))

    def logits(self) -> NDArray[Any]:
        """The logits of the last call, on the host: (1, vocabulary)."""
        on_host: NDArray[Any] = self._logits.numpy()
        return on_host

    def read_back(self) -> object:
        """Copy all logits or the last token to the host."""
        return self.logits() if self.reads_logits else self._states[self._turn]["token"].numpy()

    def run_steps(self, steps: int) -> None:
        """Call the session once per token."""
        session, bindings, turn = self._session, self._bindings, self._turn
        for _ in range(steps):
            session.run_with_iobinding(bindings[turn])
            turn ^= 1
        self._turn = turn

    def wait(self) -> None:
        """Read the token, which waits for the device. On the CPU, do nothing."""
        if self._on_webgpu:
            self._states[self._turn]["token"].numpy()

    def window(self) -> dict[str, Scalar]:
        """Facts for the record on what was timed: those of the base class, the call, the wait, and
        how many nodes of the model ran on each provider.
        """
        facts: dict[str, Scalar] = {
            **super().window(),
            "call": "run_with_iobinding",
            "wait": "read of the token",
            "state": "on the device; the position on the CPU",
        }
        for provider, count in self.nodes.items():
            facts[f"nodes on {provider}"] = count
        return facts

    def close(self) -> None:
        """Release the bindings and the state; the session stays, because other chains share it."""
        self._bindings.clear()
        self._states.clear()


def _nodes(session: Any) -> collections.Counter[str]:
    """The number of nodes of the optimised graph that ONNX Runtime gave to each provider."""
    nodes = collections.Counter[str]()
    for part in session.get_provider_graph_assignment_info():
        nodes[part.ep_name] += len(part.get_nodes())
    return nodes
