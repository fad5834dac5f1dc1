"""Sections of the page over all machines: each module registers what it draws, by importing."""
