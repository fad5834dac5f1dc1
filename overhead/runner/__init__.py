"""Running: workers, the baton, limits, the journal, progress. ``run.py`` is the way in."""
