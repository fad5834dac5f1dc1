"""Why peers at once were not measured."""

TEMPLATES = {
    "not-with-fewer": "not measured, since with K={peers}: {why}",
    "measured-again": "measured again",
}
