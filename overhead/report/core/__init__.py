"""The pages: what they are made of and how they are drawn."""
