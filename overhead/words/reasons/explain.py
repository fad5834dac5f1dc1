"""Sentences of what bounds a step, and of what would change it."""

from __future__ import annotations

TEMPLATES = {
    "not-measured": "not measured",
    "not-in-a-trace": "not in a trace",
    "not-measured-in-this-run": "not measured in this run",
    "from-pageable-memory": "{what} from pageable memory",
    "other-results": "other results",
    "results-not-compared": "results not compared",
    "same-results-not-counted": "same results (count not recorded)",
    "same-results": "same results ({compared:count value} compared)",
    "same-results-in-part": "same results ({compared:,} of {whole:,} values compared)",
}
