"""Select the records of a run that a test needs."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from overhead.claims.registry import ClaimTest, Selector
from overhead.devices import same_device_across_apis
from overhead.reading.view import View
from overhead.results import Record


def against_of(test: ClaimTest) -> Selector | None:
    """The ``against`` selector with missing fields copied from ``of``; None if the test has no ``against``."""
    if test.against is None:
        return None
    said = {name: value for name in Selector.__struct_fields__ if (value := getattr(test.against, name)) is not None}
    return msgspec.structs.replace(test.of, **said)


def pairs(test: ClaimTest, view: View) -> Iterator[tuple[Record, Record | None]]:
    """Pairs of records to compare: on the same device and equal in every parameter that both have.

    Two records of one target also have the same pattern and caller, unless the selectors name others.
    """
    wanted = against_of(test)
    for of in plainest(test.of, view):
        if wanted is None or test.against is None:
            yield of, None
        elif test.against.stack is not None or test.against.api is not None:
            yield from ((of, one) for one in plainest(wanted, view, of) if same_device_across_apis(of, one))
        else:
            alike = msgspec.structs.replace(
                wanted, pattern=wanted.pattern or of.pattern, caller=wanted.caller or of.caller
            )
            yield from ((of, one) for one in plainest(alike, view, of) if one.target_key == of.target_key)


def plainest(selector: Selector, view: View, like: Record | None = None) -> list[Record]:
    """For each target the matching record with the fewest parameters; of several, the first.

    ``like``: parameters that this record shares must be equal, except those that the selector names.
    """
    equal = {} if like is None else {k: v for k, v in like.params.items() if k not in (selector.params or {})}
    found: dict[str, Record] = {}
    for record in view.fingerprint.records:
        if _matches(selector, record) and all(record.params.get(name, v) == v for name, v in equal.items()):
            held = found.setdefault(record.target_key, record)
            if len(record.params) < len(held.params):
                found[record.target_key] = record
    return list(found.values())


def _matches(selector: Selector, record: Record) -> bool:
    return (
        (selector.stack is None or record.stack in selector.stack)
        and record.workload == (selector.workload or "step")
        and record.pattern == (selector.pattern or record.pattern)
        and record.caller == (selector.caller or record.caller)
        and record.dependency == (selector.dependency or "chained")
        and record.api == (selector.api or record.api)
        and (record.executes or selector.api == "Null")
        and all(record.params.get(name) == value for name, value in (selector.params or {}).items())
    )


def making(*tests: ClaimTest | None) -> str:
    """The command that measures what the tests need, with the APIs that the machine must have."""
    selectors = [s for test in tests if test is not None for s in (test.of, against_of(test)) if s is not None]
    words = ["overhead run"]
    words += [f"-p {stack}" for stack in dict.fromkeys(stack for s in selectors for stack in s.stack or ())]
    words += [f"--pattern {name}" for name in dict.fromkeys(s.pattern for s in selectors if s.pattern)]
    workloads = dict.fromkeys(s.workload or "step" for s in selectors)
    words += [f"--workload {name}" for name in workloads if list(workloads) != ["step"]]
    apis = list(dict.fromkeys(s.api for s in selectors if s.api and s.api != "CPU"))
    return " ".join(words) + (f" on a machine with {' and '.join(apis)}" if apis else "")
