"""WebGPU through wgpu-native and Dawn: callers, chains, device time."""

REGISTERS = ("webgpu",)
