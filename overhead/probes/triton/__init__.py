"""Triton: chain and workloads."""
