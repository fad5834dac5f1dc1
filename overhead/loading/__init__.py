"""Load fingerprints from files and folders, and reduce journals to fingerprints."""
