"""What a person reads: every sentence, title and caption that is made of figures.

``words/NAME.py`` or ``words/NAME/`` puts the facts of the package ``NAME`` into words, and may
import that package. The other packages hand over codes, numbers and dataclasses, and make no
sentences.
"""
