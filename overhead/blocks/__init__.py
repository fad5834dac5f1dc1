"""What a command or a page shows, as blocks, and their renderers: a terminal, a page of HTML,
Markdown.
"""
