"""How a cost is measured: ``sampling`` takes the samples, ``fitting`` computes figures from
them.
"""
