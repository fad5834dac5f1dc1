"""A person's own call and step: what it costs, what bounds it, and what would change that."""
