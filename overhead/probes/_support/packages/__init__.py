"""What the registry of stacks needs: entry points of other packages, and checked answers of stacks."""
