"""The sections of a machine's page, a file each; adding one is adding a file."""
