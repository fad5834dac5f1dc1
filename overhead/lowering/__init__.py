"""A module of PyTorch as a program: kernels as text, buffers, and an ordered list of dispatches. No GPU library."""
