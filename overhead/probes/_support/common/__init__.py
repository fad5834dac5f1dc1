"""For stacks of every family."""
