"""What the times of calls say, in words."""
