"""``overhead check``: the contract between the suite and a stack, tested on each of its cases."""
