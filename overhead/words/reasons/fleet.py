"""Why nodes of a fleet are not judged."""

TEMPLATES = {
    "cases-without-a-figure": "{cases} without a figure, the first {why}",
}
