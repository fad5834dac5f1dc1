"""What a terminal says of a table that it does not show whole."""

from __future__ import annotations

from collections.abc import Sequence


def more_rows(number: int) -> str:
    """How many rows a table has beyond those that are shown."""
    return f"{number} more; --json has them."


def named_column(heading: str, index: int) -> str:
    """How a sentence names a column: by its heading, or by its number where it has none."""
    return heading or f"column {index + 1}"


def hidden_columns(names: Sequence[str]) -> str:
    """Which columns have no room, by the names that ``named_column`` gives them."""
    are = "1 column is" if len(names) == 1 else f"{len(names)} columns are"
    return f"Terminal too narrow: {are} hidden ({', '.join(names)}). Use --json or a wider window."
