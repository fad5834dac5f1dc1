"""Streams that never raise, and completion in a shell."""
