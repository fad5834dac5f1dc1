"""Why a value is missing from what is read of a run."""

TEMPLATES = {
    "not-measured": "not measured",
    "not-measured-in-this-run": "not measured in this run",
    "caller-not-measured": "not measured {caller:called}",
    "case-not-measured": "the case {case} was not measured {caller:called}",
    "not-compared-in-this-run": "not compared with another case in this run",
    "library-not-measured": "{library} was not measured",
    "library-on-another-adapter": (
        "{library} was measured on {adapter:plain 40}, not on this adapter"
    ),
    "library-lacks-case": "{library} has no such case {caller:called}",
    "library-lacks-value": "{library} {caller:called}: {why}",
    "windows-differ": (
        "not compared: window.{field} is {browser_has:plain 40} in the browser and"
        " {library_has:plain 40} in the library"
    ),
}
