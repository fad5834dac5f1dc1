"""Programs whose bound is known: the first line of each file names it."""
