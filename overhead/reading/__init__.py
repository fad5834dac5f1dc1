"""What a fingerprint says, for every reader of the file: look-ups, tables, derived figures,
sentences; no probe.
"""
