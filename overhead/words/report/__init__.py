"""The sentences, titles and captions of the report: a module for each section, named after what it
is about.
"""
