"""A module of PyTorch as a program: kernels as text, buffers, and an ordered list of dispatches. No
GPU library.

``torch_export.lower`` is the way in. Only ``decoder`` and the modules named ``torch_...`` import
torch.
"""
