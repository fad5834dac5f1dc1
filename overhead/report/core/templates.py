"""The one place that sets up Jinja: what is not marked as safe is escaped, what a template misses is an error."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from overhead.reading.format import plain
from overhead.report.core.palette import colour

if TYPE_CHECKING:
    from jinja2 import Template


@functools.cache
def template(name: str) -> Template:
    """A template that lies beside this module."""
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.filters["plain"] = plain
    made.globals["colour"] = colour
    return made.get_template(name)
