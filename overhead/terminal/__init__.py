"""Streams that never raise."""
