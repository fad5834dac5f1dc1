"""Traces of a program that a profiler recorded, read as steps."""
