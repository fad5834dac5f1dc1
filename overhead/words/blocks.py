"""What a terminal says of a table that it does not show whole."""

from __future__ import annotations

from collections.abc import Sequence

from overhead.words.format import listed


def more_rows(number: int) -> str:
    """How many rows a table has beyond those that are shown."""
    return f"{number} more; --json has them."


def named_column(heading: str, index: int) -> str:
    """How a sentence names a column: by its heading, or by its number where it has none."""
    return f"`{heading}`" if heading else f"{index + 1}"


def hidden_columns(names: Sequence[str]) -> str:
    """Which columns have no room, by the names that ``named_column`` gives them."""
    are = f"column {names[0]} is" if len(names) == 1 else f"columns {listed([*names])} are"
    return f"Terminal too narrow: {are} hidden. Use --json or a wider window."
