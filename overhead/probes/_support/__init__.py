"""Code that several stacks share: one folder for each family of stacks."""
