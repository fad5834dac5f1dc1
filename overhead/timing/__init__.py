"""What one call of a user's own costs: ``overhead time`` and ``overhead.time``."""
