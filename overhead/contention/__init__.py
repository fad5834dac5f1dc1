"""Contention: what a dispatch costs while several processes or threads do the same. See
docs/contention.md.
"""
