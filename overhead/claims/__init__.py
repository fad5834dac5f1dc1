"""Published claims, tested with measured runs. See docs/claims.md for the registry and how to add a
claim.
"""
