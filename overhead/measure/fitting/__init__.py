"""Samples in, figures with intervals out. Pure: no clock, no device, no file."""
