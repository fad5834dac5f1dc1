"""Code for stacks of every family."""
