"""Many machines: which node of a cluster is slow to launch, at what, and how surely. See
docs/fleet.md.
"""
