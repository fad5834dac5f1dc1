"""Load Jinja templates. Text is escaped unless marked as safe, and a missing variable is an error."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from overhead.reading.format import plain
from overhead.report.core.palette import colour, themed

if TYPE_CHECKING:
    from jinja2 import Template


@functools.cache
def template(name: str) -> Template:
    """The template ``name`` from the folder of this module."""
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["plain"] = plain
    made.globals["colour"] = lambda stack: themed(colour(stack))
    return made.get_template(name)
