"""Sampling inside a worker: the chain, the clock, the ladder of n, the rounds, the processor."""
