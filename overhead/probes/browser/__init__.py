"""WebGPU in browsers: a page that takes samples, and a server on the loopback interface that sends it commands.

The page returns raw times and raw values. Planning, fitting and checks stay in Python.
"""

REGISTERS = ("browsers",)
