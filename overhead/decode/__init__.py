"""Decoding tokens: a language model's step as PyTorch, as a lowered program and through ONNX
Runtime.
"""
