"""What callers at once cost, in words."""
