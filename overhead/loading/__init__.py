"""From files to fingerprints: journals are reduced, folders are read."""
