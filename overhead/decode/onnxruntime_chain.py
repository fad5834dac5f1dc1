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
    """The device of the WebGPU provider, as it chooses; None if the plugin is not installed or
    finds no adapter.
    """
    # Without this variable, the EGL of Mesa prints an error for every adapter.
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    with contextlib.suppress(ImportError):
        ort = import_onnxruntime()
        import onnxruntime_ep_webgpu as plugin

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
    """The step in ONNX. ``state``: its inputs and outputs. ``weights``: tensors that it names but
    does not contain.
    """

    model: bytes
    state: tuple[str, ...]
    weights: dict[str, NDArray[Any]]


@functools.cache
def _exported(name: str) -> _ExportedStep:
    """The step of this decoder in ONNX, with its state as inputs and outputs.

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
    except ImportError as error:
        raise Unavailable(because("torch-cannot-export", text=error), _MEND) from error

    model = exported.model
    # The exporter's other optimisations take as long as the export, and ONNX Runtime has its own.
    optimizer.fold_constants(model)
    optimizer.remove_unused_nodes(model)

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
    """The step as a module that takes its state and returns the logits and the new state, because a
    model in ONNX keeps nothing from call to call.
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
                tensors[name] = given[name].clone() if name in given else buffer
            _, logits = torch.func.functional_call(self.step, tensors, ())
            return (logits, *(tensors[name] for name in state_names))

    return Functional()


@functools.cache
def _session_on(provider: str, name: str) -> Any:
    """The session of a decoder on this provider, which all cases of a process share."""
    ort = import_onnxruntime()
    exported = _exported(name)
    options = ort.SessionOptions()
    # The session uses the memory of these arrays, which stay in the cache of ``_exported``.
    weights = [ort.OrtValue.ortvalue_from_numpy(array) for array in exported.weights.values()]
    options.add_external_initializers(list(exported.weights), weights)
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if provider == _CPU_PROVIDER:
        options.intra_op_num_threads = 1
        return ort.InferenceSession(exported.model, options, providers=[_CPU_PROVIDER])
    device = webgpu_device()
    if device is None:
        raise Unavailable(because("provider-finds-no-adapter"), _MEND)
    options.add_provider_for_devices([device], {})
    return ort.InferenceSession(exported.model, options)


class OnnxDecode(DecodeChain):
    """n calls. Two sets of tensors hold the state in turn: one call reads the first and writes the
    second.
    """

    def __init__(self, target: Target, case: Case) -> None:
        super().__init__(case)
        self._ort = import_onnxruntime()
        self._on_webgpu = target.api != "CPU"
        provider = _WEBGPU_PROVIDER if self._on_webgpu else _CPU_PROVIDER
        self._device = "webgpu" if self._on_webgpu else "cpu"
        self.tolerance = WGSL_LOGIT_TOLERANCE if self._on_webgpu else LOGIT_TOLERANCE
        self.synchronous = not self._on_webgpu
        self.overlap = "serial" if self.synchronous or self.latency else "pipelined"

        self._state_names = _exported(case.workload).state
        self._session = _session_on(provider, case.workload)
        self.nodes = _nodes(self._session)
        if 2 * self.nodes.get(provider, 0) < sum(self.nodes.values()):
            raise Unverified(
                because("nodes-run-elsewhere", provider=provider, nodes=dict(self.nodes))
            )

        first, second = self._tensors(), self._tensors()
        self._states = [first, second]
        no_logits = np.zeros(self.reference.logits.shape[1:], np.float32)
        self._logits = self._ort.OrtValue.ortvalue_from_numpy(no_logits, self._device, 0)
        self._bindings = [self._bound(first, second), self._bound(second, first)]
        # The set, and the binding, that the next call reads from.
        self._turn = 0

    def _tensors(self) -> dict[str, Any]:
        """A set of tensors for the state before the first token."""
        tensors = {}
        for name in self._state_names:
            # On the CPU the tensor shares the memory of the array.
            values = self.reference.empty[name].copy()
            place = self._place_of(name)
            tensors[name] = self._ort.OrtValue.ortvalue_from_numpy(values, place, 0)
        return tensors

    def _place_of(self, name: str) -> str:
        """The device that holds this tensor of the state."""
        # A binding copies an input to the device of its node when it is bound, not when it is run.
        # The provider leaves the nodes that read the position to the CPU.
        return "cpu" if name == "position" else self._device

    def _bound(self, before: dict[str, Any], after: dict[str, Any]) -> Any:
        """The inputs and outputs of a call that reads one set of tensors and writes the other."""
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
        """What was timed: the call, the wait, and the nodes that ran on each provider."""
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
