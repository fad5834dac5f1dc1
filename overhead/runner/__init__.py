"""Runs a measurement: workers, schedule, turns, journal, progress. ``run.run`` is the entry
point.
"""
