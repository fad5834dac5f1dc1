"""What several stacks share, a folder a family."""
