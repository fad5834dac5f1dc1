"""Triton: chain and workloads."""

REGISTERS = ("triton",)
