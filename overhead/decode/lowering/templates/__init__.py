"""The kinds of dispatches, one in each file. Each writes its kernel for the shapes that it is
given.
"""
