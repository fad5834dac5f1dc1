"""Statements: names, loops, kept results, and one clear line for each error."""

from __future__ import annotations

from pathlib import Path

import pytest

from overhead.probes.common.statements import KEPT_RESULTS, StatementError, StatementLoop


def opened(call: str, setup: str = "", wait: str = "", *, keep: bool = False) -> StatementLoop:
    statement = StatementLoop(call, setup, wait, keep=keep)
    statement.open()
    return statement


def test_a_statement_loop_runs_setup_once_and_the_call_n_times() -> None:
    statement = opened("x += 1", "x = 40\nruns = []\nruns.append(1)")
    statement.issue(0)
    statement.issue(2)
    statement.issue(3)
    assert statement.names == {"x": 45, "runs": [1]}


def test_the_wait_statement_can_use_names_of_setup_and_call() -> None:
    statement = opened("last = n", "n = 3\nwaited = []", "waited.append(last)")
    statement.issue(1)
    statement.wait()
    statement.wait()
    assert statement.names["waited"] == [3, 3]


@pytest.mark.parametrize(
    "call", ["f(2)", "y = f(2)", "y: int = f(2)", "y = 1\ny += 3", "pass; f(2)"]
)
def test_a_statement_loop_keeps_the_last_results_of_the_call(call: str) -> None:
    statement = opened(call, "def f(n): return n * n", keep=True)
    statement.issue(KEPT_RESULTS + 5)
    assert statement.keeps
    assert list(statement.results) == [4] * KEPT_RESULTS
    statement.results.clear()
    statement.drop_results()
    statement.issue(3)
    assert not statement.results


@pytest.mark.parametrize("call", ["for i in range(3): f(i)", "a, b = 1, 2", "pass", "x: int"])
def test_a_statement_loop_keeps_no_results_of_a_call_without_a_value(call: str) -> None:
    statement = opened(call, "def f(n): return n", keep=True)
    statement.issue(3)
    assert not statement.keeps
    assert not statement.results


@pytest.mark.parametrize(
    ("call", "said"), [("x +", "CALL, line 1: invalid syntax: x +"), ("# nothing", "CALL is empty")]
)
def test_a_statement_loop_refuses_a_text_that_does_not_compile(call: str, said: str) -> None:
    with pytest.raises(StatementError) as refused:
        StatementLoop(call)
    assert str(refused.value) == said


@pytest.mark.parametrize(
    ("call", "setup", "said"),
    [
        ("nothing()", "", "CALL: NameError: name 'nothing' is not defined: nothing()"),
        ("a = 1\nb = a / 0", "", "CALL, line 2: ZeroDivisionError: division by zero: b = a / 0"),
        (
            "f()",
            "x = 1\ndef f():\n    raise OSError('the disk\\n is full')",
            "SETUP, line 3: OSError: the disk is full: raise OSError('the disk\\n is full')",
        ),
    ],
)
def test_describe_error_names_the_line_of_the_text_that_raised(
    call: str, setup: str, said: str
) -> None:
    statement = StatementLoop(call, setup)

    def run() -> None:
        statement.open()
        statement.issue(2)

    with pytest.raises(BaseException) as raised:
        run()
    assert statement.describe_error(raised.value) == said


@pytest.mark.parametrize(
    "name", ["repeat", "n", "i", "keep", "_overhead_repeat", "_overhead_n", "_overhead_i"]
)
def test_a_statement_that_assigns_any_name_is_still_called_n_times(name: str) -> None:
    statement = opened(f"{name} = 0; calls.append(1)", "calls = []")
    statement.issue(4)
    statement.issue(3)
    assert len(statement.names["calls"]) == 7
    assert statement.names[name] == 0


@pytest.mark.parametrize(
    ("call", "setup"), [("x += 1", "{file}"), ("x += 1", "@{file}"), ("{file}", "")]
)
def test_a_statement_that_is_the_name_of_a_file_is_refused_with_what_to_type(
    call: str, setup: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_setup.py").write_text("x = 1\n", encoding="utf-8")
    with pytest.raises(StatementError) as refused:
        StatementLoop(call.format(file="my_setup.py"), setup.format(file="my_setup.py"))
    typed = (
        "my_setup.py:FUNCTION"
        if not setup
        else "read_text"
        if setup[0] == "@"
        else "-s @my_setup.py"
    )
    assert typed in str(refused.value)


AWAITING = """
import asyncio

loops = set()

async def f(n):
    loops.add(asyncio.get_running_loop())
    await asyncio.sleep(0)
    return n * n

class Held:
    async def __aenter__(self): return await f(1)
    async def __aexit__(self, *_): pass
"""


@pytest.mark.parametrize(
    "call", ["await f(2)", "y = await f(2)", "async with Held() as held: done.append(held)"]
)
def test_a_statement_that_awaits_runs_n_times_in_one_event_loop(call: str) -> None:
    statement = opened(f"{call}\ndone.append(1)", f"{AWAITING}\ndone = []\nfirst = await f(3)")
    statement.issue(0)
    statement.issue(2)
    statement.issue(3)
    names = statement.names
    assert names["first"] == 9
    assert names["done"].count(1) >= 5, "0 + 2 + 3 units"
    (loop,) = names["loops"]
    assert not loop.is_closed()
    statement.close()
    assert loop.is_closed()


def test_the_calls_of_a_statement_that_awaits_are_one_task() -> None:
    statement = opened(
        "tasks.add(asyncio.current_task()); await asyncio.sleep(0)", "import asyncio\ntasks = set()"
    )
    statement.issue(5)
    assert len(statement.names["tasks"]) == 1, "one task for all five calls"
    statement.issue(5)
    assert len(statement.names["tasks"]) == 2, "and one for the next five"
    statement.close()


def test_a_statement_that_awaits_keeps_its_results_and_its_wait() -> None:
    statement = opened(
        "await f(2)", f"{AWAITING}\nwaited = []", "waited.append(await f(1))", keep=True
    )
    statement.issue(KEPT_RESULTS + 1)
    assert list(statement.results) == [4] * KEPT_RESULTS
    statement.drop_results()
    statement.issue(1)
    statement.wait()
    assert statement.names["waited"] == [1]
    assert len(statement.results) == KEPT_RESULTS
    statement.close()


def test_an_error_of_a_statement_that_awaits_names_its_line() -> None:
    statement = opened("x = 1\nawait g()", "async def g(): raise OSError('gone')")
    with pytest.raises(OSError) as raised:
        statement.issue(1)
    assert statement.part_of_error(raised.value) == "SETUP"
    statement.close()


def test_a_task_that_is_left_ends_with_its_statement() -> None:
    setup = (
        "import asyncio\nended = []\nasync def f():\n    try: await asyncio.sleep(9)\n    finally:"
        " ended.append(1)"
    )
    statement = opened("task = asyncio.create_task(f()); await asyncio.sleep(0)", setup)
    statement.issue(1)
    ended = statement.names["ended"]
    statement.close()
    assert ended == [1]


def test_await_in_a_plain_function_is_refused_with_its_line() -> None:
    with pytest.raises(StatementError, match="SETUP, line 2: "):
        StatementLoop("f()", "x = 1\ndef f(): await g()")


def test_a_setup_may_begin_with_an_import_from_the_future() -> None:
    statement = opened(
        "f(1)",
        "from __future__ import annotations\ndef f(n: Unknown) -> Unknown: return n",
        keep=True,
    )
    statement.issue(1)
    assert list(statement.results) == [1]


def test_the_lines_of_setup_keep_their_numbers_after_a_text_that_runs_before_it() -> None:
    statement = StatementLoop("f()", "x = n\ny = x / 0", before="n = 1\nm = 2")
    with pytest.raises(ZeroDivisionError) as raised:
        statement.open()
    assert statement.describe_error(raised.value).startswith("SETUP, line 2: ")
