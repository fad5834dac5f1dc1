"""Why nodes of a fleet are not judged, files do not count, and a node sent no files."""

TEMPLATES = {
    "too-few-nodes": "too few nodes of this kind of machine: at least {least} are needed",
    "too-few-common-figures": "the node has too few of the figures that the other nodes have",
    "nodes-differ-too-much": (
        "the nodes differ by {spread:percent}, where {usual:percent} is usual: too much to find a"
        " slow one"
    ),
    "two-groups-of-nodes": "there are two groups of nodes: {slower} are slower than {faster}",
    "case-without-its-work": (
        "a case that works on the other nodes did not do its work on this node: {why}"
    ),
    "few-nodes-with-stack": (
        "only {having:count node} measured this stack; at least {least} are needed"
    ),
    "no-common-figure": "the node has no figure that at least {share:.0%} of these nodes measured",
    "few-figures-of-stack": (
        "the node has {figures} of the {usual:count figure} that other nodes have: {why}"
    ),
    "few-figures-of-test": (
        "the newest run of the node has {figures} of the {usual:count figure} that the other nodes"
        " have"
    ),
    "stack-not-measured": "not measured",
    "newest-run-unread": "the newest run of the node cannot be used: {file}: {why}",
    "no-run-counts": "the node has no run that can be used: {why}",
    "no-run-in-folder": "the folder of the node has no file of a run, so the run did not end",
    "other-method-version": (
        "the figures of the node have the method version {version} and cannot be compared; measure"
        " again with this version"
    ),
    "date-impossible": (
        "the date of the run is wrong or in the future: {created}; set the clock of the node"
    ),
    "only-a-journal": "the node has only a journal, so the run did not end",
    "copy-of-a-run": "a copy of {file}",
    "impossible-figure": "an impossible figure: {figure} of {of} is {value:.3g} {unit}",
    "cases-without-a-figure": "{cases:count case} without a figure; the first: {why}",
    "node-exit-code": "exit code {code}, {files} files",
    "node-not-done": (
        "the run took longer than {limit_s:g} s and was ended; --node-limit gives more time"
    ),
    "node-interrupted": "interrupted",
}
