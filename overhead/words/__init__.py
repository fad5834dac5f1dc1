"""What a person reads: every sentence, title and caption that is made of figures.

A module here is named after the package whose facts it puts into words, and comes right after that package in the order
of imports. Below these modules there are codes, numbers and dataclasses, and no sentences.
"""
