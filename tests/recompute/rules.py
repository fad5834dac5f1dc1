"""Where the numbers of the front page come from: rules for sentences, and columns of tables."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from tests.recompute.runs import NUMBER, Value, figure_of, stack_in, work_in

VALUE = rf"({NUMBER}(?: or {NUMBER})?(?: ?(?:µs|%|×))?(?: \((?:noisy, |at most )?{NUMBER}(?: to {NUMBER})?\))?)"
RANGE = rf"({NUMBER} to {NUMBER}(?: µs)?|{VALUE[1:]}"
SHORTER: dict[str, dict[str, Any]] = {"torch-compile": {"mode": "eager"}, "triton": {"entry": "compiled"},
                                      "cupy": {"operation": "raw-kernel"}, "torch": {"operand": "tensor"}}  # fmt: skip
KEYS = [f"One {key}" for key in (
    "operation, NumPy, from Python", "operation, PyTorch, from Python", "launch, CUDA driver, from Python",
    "dispatch, Dawn, from Python", "dispatch, wgpu-native, from Python", "dispatch, Chromium, from JavaScript",
    "dispatch, Dawn, from compiled code", "dispatch, Vulkan, from compiled code", "node of a graph, CUDA driver",
    "fused step, CUDA driver, from Python", "fused step, Dawn, from Python", "submit, Vulkan, from compiled code",
    "dispatch and its wait, Dawn, from Python", "share of Python, Dawn",
)]  # fmt: skip
STUDENT = {13: 1.7709, 14: 1.7613, 15: 1.7531, 16: 1.7459}  # the 95th percentile, by degrees of freedom
NO_FIGURES = (r"(?:doi\.org/|arxiv\.org/abs/|doi:|arXiv:)[\w./]+|x\.add_\(1\)|torch\.compile, 1 op|T\(1\)|^= 1$|"
              r"left of 1:|95 % confidence|90 % of cases|9 of 10 runs|within 5 %, or not|graph of 100 nodes|"
              r"Python 3\.11|wider than 10 %|of over 10 %|at least 1\.2 times, by most rules 1\.5")  # fmt: skip
Compute = Callable[[Any, re.Match[str], str], Sequence[Value]]
# A rule: a pattern, with # for a value with its interval and ~ where that may be a range alone, and what gives the
# values: from the checker, the match, and the text up to its end, which names the stack last.
RULES: tuple[tuple[str, Compute], ...] = (
    (r"not told apart from [^(]+ \(#", lambda c, m, s: [figure_of(c.case(s))]),
    (r"goes through [^:]+: #(?: \(expect ~)?", lambda c, m, s: [figure_of(c.case(s)), c.next_run(c.case(s))]),
    (r"# through (?:Dawn|wgpu-native)(?: \(noisy, ~)?", lambda c, m, s: (
        [c.run.share(stack_in(s)) if "%" in m[0] else figure_of(c.case(s))] * 2)),
    (r"# instead of #(?: \(noisy\))? through (?:Dawn|wgpu-native), ~ times less", lambda c, m, s: [
        figure_of(c.run.batch(stack_in(s))), figure_of(c.run.case(stack_in(s))), figure_of(
            c.run.case(stack_in(s))).over(figure_of(c.run.batch(stack_in(s))))]),
    (r"a dispatch through [^,]+? costs # instead of #", lambda c, m, s: [
        figure_of(c.run.batch(stack_in(s))), figure_of(c.run.case(stack_in(s)))]),
    (r"runs on # other boards of this kind of machine: (?:# of its # CPU-bound costs are below all of theirs)?(?:, )?"
     r"(?:# of its # CPU-bound costs are above all of theirs)?\. At the median the others take # times",
     lambda c, m, s: [(p := c.place())[0], p[1], p[3], p[2], p[3], p[4]]),
    (r"from about # tiny operations", lambda c, m, s: [Value(math.ceil(
        c.change(m.string, "torch.compile")[0].over(c.change(m.string, "torch.compile")[1]).value))]),
    (r"measured ways: (?P<label>[^,]+), #: # times cheaper than the CUDA driver's graph",
     lambda c, m, s: c.cheapest(m)),
    (r"up to # the real cost \(.*?\)", lambda c, m, s: [figure_of(c.case(s), "naive").over(figure_of(c.case(s)))]),
    (r"#, CPU busy for #", lambda c, m, s: [figure_of(c.case(s)), figure_of(c.case(s), "host")]),
    (r"within # of the one shown", lambda c, m, s: [Value(100 * (c.factor("host") - 1))]),
    (r"changed by # between processes.* took # to #", lambda c, m, s: c.canary()),
    (r"(?:: |, |and )(?P<w>[a-z]+) \((?:# to )?# times\)", lambda c, m, s: c.cheaper(m["w"])),
    (r"\b(?P<w>[a-z]+) # times (?P<v>cheaper|dearer)(?! through)", lambda c, m, s: [
        c.beside_graph(m["w"], "fused CUDA", m["v"])]),
    (r"# times (?P<v>cheaper|dearer) through (?:Dawn|wgpu-native)", lambda c, m, s: [
        c.beside_graph(work_in(s), f"fused WGSL, {s.split()[-1]}", m["v"])]),
    (r"(?P<w>[a-z]+) (?:# to )?# times \(its step takes #, the graph adds #\)", lambda c, m, s: [
        *c.cheaper(m["w"]), c.step(m["w"], "WGSL"),
        c.way(m["w"], "a graph")[1].plus(c.step(m["w"], "fused CUDA"), -1)]),
    (r"# times cheaper than fused WGSL", lambda c, m, s: [c.least("a token", "WGSL").over(c.least("a token", ""))]),
    (r"step of the WGSL kernel takes # times", lambda c, m, s: [
        c.step(work_in(s), "WGSL").over(c.step(work_in(s), "fused CUDA"))]),
    (r"a step in CUDA takes #", lambda c, m, s: [c.step(work_in(s), "fused CUDA")]),
    (r"to which the graph adds #", lambda c, m, s: [
        c.way(work_in(s), "a graph")[1].plus(c.step(work_in(s), "fused CUDA"), -1)]),
    (r"(?:# to )?# times as long where the (?P<l>host|device) (?:is|or both are) the limit \(# figures?\)",
     lambda c, m, s: c.extremes(m, s)),
    (r"(?P<k>(?:One|Python's share) [^;:(]+) \(# times\)", lambda c, m, s: [c.pairs[c.other(s), m["k"]][0]]),
    (r"from # boards", lambda c, m, s: [Value(max(one["boards"] for name, one in c.spreads["spreads"].items()
                                             if name.endswith(f", {c.own.kind}")))]),
    (r"# figures? (?:measured )?(?P<r>in neither|of (?:this|the other) run only)",
     lambda c, m, s: [c.left_out(m["r"], s)]),
    (r"^(?P<k>(?:One|Python's share) [^:]+): #", lambda c, m, s: [c.run.key(m["k"])[0]]),
    (r"(?:: |from )# (?:to|→) # µs|# µs, one operation in eager mode #", lambda c, m, s: [*c.change(m.string, s)] * 2),
    (r"# (?:µs )?(?:a \w+ )?instead of #(?= a | from )", lambda c, m, s: c.change(m.string, s)[::-1]),
    (r"µs, #(?=[;.])", lambda c, m, s: [c.change(m.string, s)[0].over(c.change(m.string, s)[1])]),
    (r"after # replays?|as much as ~ replays", lambda c, m, s: [
        Value(math.ceil(c.replays(m.string).value)), c.replays(m.string)]),
    (r"adds # to a step of #|# µs each; a step with it takes #", lambda c, m, s: [
        c.act(m.string, "difference"), figure_of(c.run.case("torch")), *(
            c.act(m.string, figure) for figure in ("difference", "ratio"))]),
    (r"a \w+ costs ~\. With (?P<a>.+?) after each it takes ~", lambda c, m, s: [
        figure_of(c.run.case(stack_in(s))), figure_of(c.run.waited(stack_in(s), m["a"]))]),
    (r"a \w+ costs ~\. One \w+ and its wait take ~", lambda c, m, s: [
        figure_of(c.run.case(stack_in(s)), name) for name in ("complete", "naive")]),
    (r"noisy, ~$|nonlinear: #, in long chains #|two speeds, #", lambda c, m, s: [
        figure_of(c.record), *map(Value, figure_of(c.record).modes), figure_of(c.record)]),
    (r"x\.add_\(y\), # from Python", lambda c, m, s: [figure_of(c.run.case("torch", operand="tensor"))]),
    (r"each row is one caller \(#\)$", lambda c, m, s: [Value(c.counts["called"])]),
    (r"same numbers \(#\)$", lambda c, m, s: [Value(c.counts["way"])]),
    (r"^Key figures.* \(#\)$", lambda c, m, s: [Value(c.counts["this run"])]),
    (r"vendors \(#\)|files of # kinds of machine|fingerprints of # machines",
     lambda c, m, s: [Value(len({r.machine["id"] for r in c.runs}))] * 3),
)  # fmt: skip
# By heading, what a cell holds: from the checker with the record of the row, the first cells of the row, and the number
# of the column among those of other runs.
COLUMNS: tuple[tuple[str, Callable[[Any, Sequence[str], int], Value]], ...] = (
    (r"^µs", lambda c, row, i: c.chains[row[0]][row[1]][0]),
    (r"^relative", lambda c, row, i: c.beside_graph(row[0], row[1], "dearer")),
    (r"^a step", lambda c, row, i: c.chains[row[0]][row[1]][1]),
    (r"from step", lambda c, row, i: c.cheaper_from(row[0], row[1])),
    (r"^this run", lambda c, row, i: c.own.key(row[0])[0]),
    (r"next run", lambda c, row, i: c.next_run(c.record)),
    (r", method", lambda c, row, i: c.others[i].key(row[0])[0]),
    (r"over it", lambda c, row, i: c.pairs[c.others[i].title, row[0]][0]),
    (r"^without", lambda c, row, i: figure_of(c.record)),
    (r"^with$", lambda c, row, i: figure_of(c.run.waited(c.record["stack"], row[1]))),
    (r"^T\(1\)", lambda c, row, i: figure_of(c.record, "naive")),
    (r"^one more", lambda c, row, i: figure_of(c.record)),
    (r"^CPU", lambda c, row, i: figure_of(c.record, "host")),
    (r"^met", lambda c, row, i: figure_of(c.record, "met")),
)
