"""Stacks that run nothing but the decode workload."""

from overhead.decode.stacks import onnxruntime as onnxruntime, torch_webgpu as torch_webgpu
