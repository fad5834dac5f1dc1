"""WebGPU in browsers: a page that takes samples, and a server on the loopback interface that sends
it commands.
"""

REGISTERS = ("browsers",)
