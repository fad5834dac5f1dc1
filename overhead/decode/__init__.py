"""ONNX Runtime: its providers, and the decode workload."""
