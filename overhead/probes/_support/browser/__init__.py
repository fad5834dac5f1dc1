"""The browser's share: a page that times what it is asked to time, and the loopback server that asks.

The page returns raw clocks and raw values; planner, fit, gates and proof stay in Python.
"""
