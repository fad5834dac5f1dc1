"""What ``overhead time`` varies: a variable of the statements, the number of library threads, and the interpreter."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

import msgspec

from overhead.errors import UsageError, check_text
from overhead.explain.call_spec import THREADS, CallSpec, FoundCall
from overhead.results import Fingerprint, Record, Scalar
from overhead.runner.interpreter import Interpreter, find_interpreters


class TimeOptions(TypedDict, total=False):
    """Options of ``time``. ``labels``: names of the calls, in their order. ``quick``: only the first answer.

    ``vary``: a variable, which the setup and the calls see, with its values. ``threads``: numbers of library threads.
    ``pythons``: two interpreters, whose processes alternate; the second is compared with the first.
    """

    labels: Sequence[str]
    quick: bool
    vary: Mapping[str, Sequence[Scalar]]
    threads: Sequence[int]
    pythons: Sequence[str]


@dataclass(frozen=True)
class Row:
    """A row of the result: a call with one value of the variable, one number of threads and one interpreter.

    ``position``, ``given``, ``side``: the numbers of call, value and interpreter, from 0. ``varied``: by column.
    """

    label: str
    interpreter: Interpreter
    side: int
    threads: int
    position: int
    given: int
    varied: dict[str, Scalar]

    def record(self, side: Fingerprint) -> Record:
        """What was measured of it in the run of its interpreter."""
        device = f"threads {self.threads}" if self.threads else ""
        return next(
            one
            for one in side.records
            if (one.params["position"], one.params.get("given", 0), one.device) == (self.position, self.given, device)
        )


def parse_vary(text: str) -> dict[str, list[Scalar]]:
    """The variable and the values of ``NAME=VALUE,VALUE``; a value that is no Python literal is text."""
    name, _, values = text.partition("=")
    return {name: [_literal(value.strip()) for value in values.split(",")]}


def parse_threads(text: str) -> list[int]:
    """The numbers of ``1,4``. Raises ``UsageError``."""
    try:
        return [int(number) for number in text.split(",") if text]
    except ValueError:
        raise UsageError(f"--threads {text}: give numbers of 1 or more, such as 1,4") from None


def with_options(spec: CallSpec, options: TimeOptions) -> CallSpec:
    """The spec with these options. Raises ``UsageError``, one line, for one that cannot be used."""
    labels, threads, vary = options.get("labels", ()), list(options.get("threads", ())), options.get("vary", {})
    check_text(*labels)
    if labels and len(labels) != len(spec.calls):
        raise UsageError(f"--label: {len(labels)} given for {len(spec.calls)} calls; give one for each call, in order")
    if len(vary) > 1:
        raise UsageError(f"--vary: {len(vary)} variables given; one is varied")
    for name, values in vary.items():
        if not name.isidentifier() or keyword.iskeyword(name) or "" in values or not values:
            shown = f"{name}={','.join(map(str, values))}"
            raise UsageError(f"--vary {shown}: not of the form NAME=VALUE,VALUE, such as n=64,256")
    if any(not isinstance(number, int) or number < 1 for number in threads):
        raise UsageError(f"--threads {','.join(map(str, threads))}: give numbers of 1 or more, such as 1,4")
    if (pythons := [str(path) for path in options.get("pythons", ())]) and len(pythons) != 2:
        raise UsageError(f"--python: {len(pythons)} interpreter given; give two to compare")
    if pythons and options.get("quick"):
        raise UsageError("--quick: one process cannot compare two interpreters; leave out --quick or --python")
    given = [f"{name} = {value!r}" for name, values in vary.items() for value in values]
    for option, each in (("--vary", given), ("--threads", threads)):
        if len(set(each)) < len(each):
            raise UsageError(f"{option}: a value stands there twice")
    return msgspec.structs.replace(spec, given=given, threads=threads, pythons=pythons)


def rows_of(spec: CallSpec, labels: Sequence[str]) -> list[Row]:
    """The rows of the result: those of one process follow one another, in the order of ``spec.cases``."""
    rows = []
    for side, interpreter in enumerate(find_interpreters(spec.pythons)):
        for threads in spec.threads or [0]:
            variables = dict.fromkeys(THREADS, str(threads)) if threads else {}
            own = replace(interpreter, environment={**interpreter.environment, **variables})
            shown: dict[str, Scalar] = {"python": spec.pythons[side]} if spec.pythons else {}
            shown |= {"threads": threads} if threads else {}
            for position, label in enumerate(labels):
                for number, given in enumerate(spec.given or [""]):
                    name, _, value = given.partition(" = ")
                    varied = shown | ({name: ast.literal_eval(value)} if given else {})
                    rows.append(Row(label, own, side, threads, position, number, varied))
    return rows


def common_found(trials: Sequence[Sequence[FoundCall]]) -> list[FoundCall]:
    """What all variants found out about each case, with its longest time. Raises ``UsageError`` where waits differ."""
    for each in zip(*trials, strict=True):
        if len({(*one.waits, one.said, one.adapter) for one in each}) > 1:
            waits = "; ".join(f"{one.said} on {one.adapter}" for one in each)
            raise UsageError(f"the waits differ, so nothing is compared: {waits}; give --wait")
    return [max(each, key=lambda one: one.one_ns) for each in zip(*trials, strict=True)]


def _literal(text: str) -> Scalar:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value if isinstance(value, bool | int | float | str) else text
