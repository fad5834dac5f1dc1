"""What runs in a worker: the clock, the sizes of n, the rounds, the choice of a processor."""
