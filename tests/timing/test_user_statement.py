"""The trial: what it finds out about a statement, and one clear line for each that cannot be
measured.
"""

from __future__ import annotations

import os
import time as clock
from types import SimpleNamespace
from typing import Any

import pytest

from overhead.errors import UsageError
from overhead.results import Reason, because, codes_of
from overhead.timing import user_statement
from overhead.timing.call_spec import CallSpec
from overhead.timing.user_statement import CallChain, try_statements


def test_a_statement_on_the_processor_needs_no_wait() -> None:
    (found,) = try_statements(
        CallSpec(calls=["np.add(x, 1, out=x)"], setup="import numpy as np; x = np.zeros(9)")
    ).found
    assert (found.waits, found.api, found.adapter) == (["none"], "CPU", "CPU")
    assert "numpy" in found.packages
    assert 0 < found.one_ns < 1e8


def test_a_statement_that_awaits_is_tried_and_runs_as_a_chain() -> None:
    setup = "made = []\nasync def f():\n    made.append(1)\n    return 1"
    spec = try_statements(CallSpec(calls=["await f()"], setup=setup))
    assert spec.found[0].waits == ["none"]
    chain = CallChain(spec, 0)
    chain.issue(3)
    chain.issue(4)
    chain.wait()
    assert chain.executed() == 7
    assert len(chain._statement.names["made"]) == 7
    chain.close()


@pytest.mark.needs("jax")
def test_a_statement_with_jax_waits_for_its_last_results() -> None:
    setup = "import jax, jax.numpy as jnp; f = jax.jit(lambda x: x + 1); x = jnp.zeros(256)"
    (found,) = try_statements(CallSpec(calls=["f(x)"], setup=setup)).found
    assert found.waits == ["jax"]
    with pytest.raises(UsageError, match="--wait"):
        try_statements(CallSpec(calls=["for _ in range(2): f(x)"], setup=setup))


REFUSED = {
    "an error in SETUP": (
        CallSpec(calls=["1"], setup="x = 1\nimport nowhere"),
        "SETUP, line 2: ModuleNotFoundError",
    ),
    "an error in the wait": (
        CallSpec(calls=["1"], wait="f()"),
        "--wait: NameError: name 'f' is not defined: f()",
    ),
    "a wait with a misspelt name": (
        CallSpec(calls=["1"], wait="torhc"),
        "unknown wait 'torhc', did you mean 'torch'?",
    ),
    "os._exit": (
        CallSpec(calls=["import os; os._exit(3)"]),
        "CALL: the process ended with exit code 3",
    ),
    "a call that works three times": (
        CallSpec(calls=["next(i)"], setup="i = iter(range(3))"),
        "CALL cannot be repeated: ",
    ),
    "a method that is not called": (
        CallSpec(calls=["x.append"], setup="x = []"),
        "CALL reads x.append and does not",
    ),
    "a coroutine": (
        CallSpec(calls=["f()"], setup="async def f(): pass"),
        "CALL returns a coroutine",
    ),
    "coroutines in a loop": (
        CallSpec(calls=["for _ in range(2): f()"], setup="async def f(): pass"),
        "CALL makes a coroutine that does not run: write await",
    ),
    "a generator": (CallSpec(calls=["f()"], setup="def f(): yield 1"), "CALL returns a generator"),
    "a clock that stands still": (
        CallSpec(calls=["n += 1"], setup="import time; time.perf_counter_ns = lambda: 5; n = 0"),
        "SETUP or CALL replaces time.perf_counter_ns",
    ),
    "futures in a list of the setup": (
        CallSpec(
            calls=["kept.append(Future())"],
            setup="from concurrent.futures import Future; kept = []",
        ),
        "CALL keeps a future",
    ),
    "a future by another name than the last": (
        CallSpec(calls=["one = Future(); 1"], setup="from concurrent.futures import Future"),
        "CALL keeps a future",
    ),
    "another variable by global": (
        CallSpec(calls=["f(); r + 1"], setup="r = 0\ndef f():\n global r\n r = 1"),
        "SETUP declares global r",
    ),
    "the second of two": (CallSpec(calls=["1", "f()"]), "statement 2: CALL: NameError"),
    "a fork": (
        CallSpec(calls=["os.fork()"], setup="import os"),
        "CALL cannot be measured: it forks",
    ),
}


@pytest.mark.parametrize(
    ("call", "example"),
    [
        ("np.zeros(3)", "import numpy as np"),
        ("math.sqrt(2)", "import math"),
        ("await made(1)", "made = ..."),
    ],
)
def test_a_name_that_setup_does_not_define_is_told_with_what_to_give(
    call: str, example: str
) -> None:
    with pytest.raises(UsageError) as refused:
        try_statements(CallSpec(calls=[call]))
    why = refused.value.why
    assert isinstance(why, Reason)
    assert why.code == "name-not-in-setup"
    assert why.values["example"] == example


@pytest.mark.parametrize("what", REFUSED)
def test_a_statement_that_cannot_be_measured_is_refused_in_one_line(what: str) -> None:
    spec, said = REFUSED[what]
    with pytest.raises(UsageError) as refused:
        try_statements(spec)
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)


def test_a_future_from_before_the_call_and_a_variable_that_is_global_everywhere_are_accepted() -> (
    None
):
    setup = "from concurrent.futures import Future; kept = [Future()]\ndef f():\n global r\n r = 1"
    assert try_statements(CallSpec(calls=["f(); r + 1"], setup=setup)).found


def test_a_statement_that_uses_multiprocessing_is_not_refused_as_a_fork() -> None:
    setup = (
        "import multiprocessing\np ="
        " multiprocessing.get_context('fork').Process(target=print)\np.start()\np.join()"
    )
    assert try_statements(CallSpec(calls=["1"], setup=setup)).found


def test_a_statement_that_takes_too_long_is_refused() -> None:
    with pytest.raises(UsageError, match=r"0\.2\d* s.*0\.1 s"):
        try_statements(CallSpec(calls=["time.sleep(0.2)"], setup="import time"), longest_s=0.1)


def test_a_lazy_result_is_timed_without_its_work_only_on_request_and_never_called_done() -> None:
    spec = CallSpec(calls=["f()"], setup="def f(): yield 1", wait="none")
    (found,) = try_statements(spec).found
    assert "returned-work-may-be-missing" in codes_of(found.said)


@pytest.mark.parametrize(("step_ns", "works"), [(20_000, True), (15_600_000, True), (0, False)])
def test_a_clock_with_long_steps_gives_a_time_and_one_that_stands_still_a_refusal(
    monkeypatch: pytest.MonkeyPatch, step_ns: int, works: bool
) -> None:
    now = 0

    def call(n: int) -> None:
        nonlocal now
        now += 100 * n

    monkeypatch.setattr(
        clock, "perf_counter_ns", lambda: now // step_ns * step_ns if step_ns else 5
    )
    statement: Any = SimpleNamespace(issue=call, describe_error=str)
    if works:
        assert user_statement._rough_time_ns(statement, lambda: None, 0.5, "CALL") > 0
    else:
        with pytest.raises(UsageError):
            user_statement._rough_time_ns(statement, lambda: None, 0.5, "CALL")


@pytest.mark.skipif(
    os.name == "nt", reason="descriptors of the parent have other numbers on Windows"
)
def test_a_statement_that_writes_to_descriptors_it_did_not_open_is_refused() -> None:
    setup = (
        "import contextlib, os\n"
        "for number in range(3, 20):\n"
        "    with contextlib.suppress(OSError):\n"
        "        os.write(number, b'junk\\n')"
    )
    with pytest.raises(UsageError) as refused:
        try_statements(CallSpec(calls=["1"], setup=setup))
    written = because("pipe-of-answers-written")
    assert refused.value.why == because("ended-while-doing", doing="SETUP", why=written)
