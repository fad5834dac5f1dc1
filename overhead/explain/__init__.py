"""What overhead costs in a person's own call and step, and what would change it."""
