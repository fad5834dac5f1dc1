"""How the host's time of a call divides: made-up samples, and running calls whose parts are
known.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from time import perf_counter

import msgspec
import pytest

from overhead.errors import Unavailable, UsageError
from overhead.probes.common.statements import StatementLoop
from overhead.results import Figure, Value, Why, because, code_of
from overhead.timing import sampled_thread, thread_sampler
from overhead.timing.call_spec import CallSpec
from overhead.timing.division import GENERATED, STANDARD, CallPart, Division, divide
from overhead.timing.sampled_thread import Phase, SampledThread, this_thread
from overhead.timing.saved import read_timing
from overhead.timing.show import timing_blocks
from overhead.timing.thread_sampler import Sample
from overhead.timing.timing import Timing
from overhead.timing.user_statement import try_statements
from overhead.words.reasons import in_words
from overhead.words.timing.division import DEVICE_APART, WAIT_IN_DRIVER, division_sentence
from tests.fakes import timings as made

PACKAGES = "/venv/lib/python3.12/site-packages"
OWN, SUITE = "<overhead statement 0>", "/venv/overhead/timing/user_statement.py"
PYTHON, LIBC = "/usr/lib/libpython3.12.so.1.0", "/usr/lib/libc.so.6"
BINDING, LIBRARY = (
    f"{PACKAGES}/torch/lib/libtorch_python.so",
    f"{PACKAGES}/torch/lib/libtorch_cpu.so",
)
ONE_OBJECT = f"{PACKAGES}/numpy/_core/_multiarray_umath.cpython-312-x86_64-linux-gnu.so"
THREAD = SampledThread(
    pid=1,
    state=0,
    to_frame=[0],
    code=0,
    instruction=0,
    filename=0,
    ascii=0,
    wide=0,
    phase=0,
    folders=[PACKAGES],
    standard=["/usr/lib/python3.12"],
    suite="/venv/overhead",
    executable="/usr/bin/python3.12",
)


def samples(
    count: int, file: str, instruction: int, object: str, *, in_system: bool = False
) -> list[Sample]:
    return [Sample(file, instruction, object, in_system, 0.0)] * count


def shares(division: Division) -> dict[str, float]:
    return {part.name: round(part.share.value, 3) for part in division.parts if part.share.value}


def share_of(part: CallPart | None) -> Value:
    """The share of a part, which must be there, with its interval."""
    assert part is not None
    found = part.share.measured
    assert found is not None
    return found


def paragraphs_of(timing: Timing) -> str:
    """The text below the table that ``overhead time`` prints."""
    paragraphs: list[str] = []
    for part in timing_blocks(timing):
        paragraphs += getattr(part, "paragraphs", [])
    return "\n".join(paragraphs)


def test_python_is_told_from_compiled_code_by_the_instruction_that_enters_it() -> None:
    division = divide(
        [
            *samples(100, OWN, instruction=1, object=PYTHON),
            *samples(50, f"{PACKAGES}/numpy/_core/fromnumeric.py", instruction=2, object=PYTHON),
            *samples(20, OWN, instruction=3, object=PYTHON),
            *samples(10, OWN, instruction=3, object=LIBC),
            *samples(20, OWN, instruction=3, object=ONE_OBJECT),
        ],
        THREAD,
    )
    assert shares(division) == {
        "own-python": 0.5,
        "library-python": 0.25,
        "binding-and-library": 0.25,
    }
    compiled = division.part("binding-and-library")
    assert compiled is not None
    assert (compiled.of, list(compiled.objects)) == (["numpy"], [Path(ONE_OBJECT).name])
    assert share_of(compiled).floor < 0.25 < share_of(compiled).ceiling


def test_a_binding_is_told_from_its_library_where_they_are_separate_files() -> None:
    division = divide(
        [
            *samples(100, OWN, instruction=1, object=LIBRARY),
            *samples(50, OWN, instruction=1, object=BINDING),
            *samples(50, OWN, instruction=1, object=PYTHON),
        ],
        THREAD,
    )
    assert shares(division) == {"binding": 0.5, "library": 0.5}


def test_memory_functions_that_either_part_may_call_widen_both_intervals() -> None:
    """Half of the samples are in functions of libc, for the binding or for the library."""
    without = [
        *samples(100, OWN, instruction=1, object=LIBRARY),
        *samples(100, OWN, instruction=1, object=BINDING),
    ]
    division = divide([*without, *samples(200, OWN, instruction=1, object=LIBC)], THREAD)
    assert shares(division) == {"binding": 0.5, "library": 0.5}
    for part in [one for one in division.parts if one.name != "own-python"]:
        assert share_of(part).floor < 0.25
        assert share_of(part).ceiling > 0.75
    alone = divide(
        [
            *samples(100, OWN, instruction=1, object=LIBRARY),
            *samples(100, OWN, instruction=1, object=LIBC),
        ],
        THREAD,
    )
    assert share_of(alone.part("binding-and-library")).floor > 0.95


def test_a_driver_and_calls_of_the_operating_system_are_parts_of_their_own() -> None:
    division = divide(
        [
            *samples(100, OWN, instruction=1, object="/usr/lib/libcuda.so.580.1"),
            *samples(60, OWN, instruction=1, object=LIBRARY),
            *samples(40, OWN, instruction=1, object=LIBC, in_system=True),
        ],
        THREAD,
    )
    assert shares(division) == {"binding-and-library": 0.3, "driver": 0.5, "system": 0.2}
    assert {part.name: part.of for part in division.parts} == {
        "own-python": [],
        "binding-and-library": ["torch"],
        "driver": ["libcuda"],
        "system": [],
    }


def test_a_further_package_is_named_from_a_share_of_the_whole_call_on() -> None:
    nvidia = f"{PACKAGES}/nvidia/cublas/lib/libcublas.so.13"
    few = divide(
        [
            *samples(960, OWN, instruction=1, object=LIBRARY),
            *samples(40, OWN, instruction=1, object=nvidia),
        ],
        THREAD,
    )
    more = divide(
        [
            *samples(940, OWN, instruction=1, object=LIBRARY),
            *samples(60, OWN, instruction=1, object=nvidia),
        ],
        THREAD,
    )
    alone = divide(
        [
            *samples(960, OWN, instruction=2, object=PYTHON),
            *samples(40, OWN, instruction=1, object=nvidia),
        ],
        THREAD,
    )
    of = {
        name: one.part("binding-and-library")
        for name, one in (("few", few), ("more", more), ("alone", alone))
    }
    assert {name: part.of for name, part in of.items() if part} == {
        "few": ["torch"],
        "more": ["torch", "nvidia"],
        "alone": ["nvidia"],
    }


@pytest.mark.parametrize(
    ("share", "low", "high", "has_value"),
    [
        (0.035, 0.02, 0.26, False),
        (0.83, 0.63, 0.88, False),
        (0.74, 0.62, 0.79, True),
        (0.007, 0.004, 0.012, True),
    ],
)
def test_a_share_at_the_edge_of_a_wide_interval_is_shown_as_its_interval_alone(
    share: float, low: float, high: float, has_value: bool
) -> None:
    figure = Figure(name="share", unit="share", value=share, low=low, high=high, processes=1)
    division = Division(parts=[CallPart(name="driver", share=figure, of=["libcuda"])], samples=1600)
    brackets = division_sentence("call", division, None, on_device=False).count("(")
    assert brackets == has_value


def test_a_wait_inside_the_driver_is_told_where_the_driver_takes_part() -> None:
    figures = [made.figure("complete", value=1_000.0, low=990.0, high=1_010.0)]
    with_driver = divide(
        samples(200, OWN, instruction=1, object="/usr/lib/libcuda.so.580.1"), THREAD
    )
    without = divide(samples(200, OWN, instruction=1, object=LIBRARY), THREAD)

    def said(division: Division, on: str) -> str:
        call = made.call("f()", figures, on=on, division=division)
        return paragraphs_of(made.timing(call))

    assert WAIT_IN_DRIVER in said(with_driver, "NVIDIA H100")
    assert WAIT_IN_DRIVER not in said(without, "NVIDIA H100")
    assert DEVICE_APART in said(without, "NVIDIA H100")
    assert DEVICE_APART not in said(without, "CPU")


def test_the_standard_library_is_no_python_of_the_user_and_generated_code_is_compiled() -> None:
    division = divide(
        [
            *samples(
                100,
                "/usr/lib/python3.12/json/encoder.py",
                instruction=1,
                object="/usr/bin/python3.12",
            ),
            *samples(50, "<frozen os>", instruction=2, object=PYTHON),
            *samples(50, OWN, instruction=3, object=""),
        ],
        THREAD,
    )
    found = {part.name: part.of for part in division.parts}
    assert found == {
        "own-python": [],
        "library-python": [STANDARD],
        "binding-and-library": [GENERATED],
    }


def test_that_none_of_the_time_is_the_users_own_python_is_said_with_what_the_samples_allow() -> (
    None
):
    own = share_of(
        divide(samples(200, OWN, instruction=1, object=LIBRARY), THREAD).part("own-python")
    )
    assert own.value == 0
    assert 0 < own.ceiling < 0.03


def test_python_code_of_no_known_file_is_shared_out_and_code_of_the_suite_left_out() -> None:
    division = divide(
        [
            *samples(300, SUITE, instruction=9, object=PYTHON),
            *samples(60, OWN, instruction=1, object=PYTHON),
            *samples(20, f"{PACKAGES}/torch/nn/modules/module.py", instruction=2, object=PYTHON),
            *samples(20, "<shim>", instruction=3, object=PYTHON),
            *samples(20, "", instruction=4, object=PYTHON),
        ],
        THREAD,
    )
    assert division.samples == 120
    assert shares(division) == {"own-python": 0.75, "library-python": 0.25}


def test_the_parts_add_up_to_the_call() -> None:
    division = divide(
        [
            *samples(70, OWN, instruction=1, object=PYTHON),
            *samples(31, "", instruction=2, object=PYTHON),
            *samples(17, OWN, instruction=3, object=LIBC),
            *samples(29, OWN, instruction=3, object=BINDING),
            *samples(53, OWN, instruction=3, object=LIBRARY),
            *samples(11, OWN, instruction=3, object="/usr/lib/libcuda.so.1"),
        ],
        THREAD,
    )
    assert sum(part.share.value or 0.0 for part in division.parts) == pytest.approx(1.0)
    for part in division.parts:
        share = share_of(part)
        assert 0.0 <= share.floor <= share.value <= share.ceiling <= 1.0


def test_few_samples_give_no_parts() -> None:
    division = divide(samples(49, OWN, instruction=1, object=PYTHON), THREAD)
    assert division.parts == []
    assert code_of(division.reason) == "too-few-samples"


def test_an_answer_says_how_each_call_divides_or_why_not() -> None:
    figures = [made.figure("complete", value=1_000.0, low=990.0, high=1_010.0)]
    known = divide(
        [
            *samples(50, OWN, instruction=1, object=PYTHON),
            *samples(150, OWN, instruction=2, object=ONE_OBJECT),
        ],
        THREAD,
    )
    refused = Division(reason=because("sampling-not-permitted", error="Operation not permitted"))
    timing = made.timing(
        made.call("f()", figures, on="CPU", division=known),
        made.call("g()", figures, on="CPU", division=refused),
    )
    text = paragraphs_of(timing)
    assert "25 %" in text
    assert "75 %" in text
    assert "SYS_PTRACE" in text
    assert "25 %" in str(timing)
    data = timing.to_dict()
    assert [part["name"] for part in data["calls"][0]["division"]["parts"]] == [
        "own-python",
        "binding-and-library",
    ]
    assert made.timing(made.call("f()", figures)).to_dict()["calls"][0]["division"] is None


NOT_HERE = (
    "sampling-needs-linux",
    "sampling-needs-processor",
    "sampling-not-permitted",
    "too-few-samples",
)
"""Why a system allows no samples, or a very busy one too few."""


def test_a_saved_answer_keeps_how_a_call_divides(tmp_path: Path) -> None:
    figures = [made.figure("complete", value=1_000.0, low=990.0, high=1_010.0)]
    timing = made.timing(
        made.call(
            "f()",
            figures,
            division=divide(samples(200, OWN, instruction=1, object=LIBRARY), THREAD),
        )
    )
    file = tmp_path / "time.json"
    file.write_bytes(msgspec.json.encode(in_words(timing.to_dict())))
    assert read_timing(file).calls[0].division == timing.calls[0].division


def of_call(call: str, setup: str = "") -> Division:
    """How a running call divides; the test is skipped where it cannot be sampled."""
    reason: Why = ""
    for _ in range(3):
        (found,) = try_statements(CallSpec(calls=[call], setup=setup, first=True)).found
        assert found.division is not None
        reason = found.division.reason
        if code_of(reason) not in NOT_HERE:
            return found.division
    pytest.skip(str(reason))


def python_of(division: Division) -> float:
    return sum(part.share.value or 0.0 for part in division.parts if part.name.endswith("python"))


LAYERS = """
import hashlib
class Innermost:
    def call(self, *given): return hashlib.pbkdf2_hmac(*given)
class Layer:
    def __init__(self, inner): self.inner = inner
    def call(self, *given): return self.inner.call(*given)
layers = Innermost()
for _ in range({number}): layers = Layer(layers)
given = ("sha256", b"a", b"b", 20)
"""


ENDING = "import os, time; began = time.monotonic()"


def least_ns(call: str, setup: str) -> float:
    """The shortest time of a call of many, which other programs disturb least."""
    loop = StatementLoop(call, setup)
    loop.open()
    times = []
    for _ in range(40):
        began = perf_counter()
        loop.issue(-20)
        times.append((perf_counter() - began) / 20)
    return min(times) * 1e9


@pytest.mark.parametrize("number", [3, 100])
def test_layers_of_python_around_compiled_code_take_the_share_that_they_add(number: int) -> None:
    setup = LAYERS.format(number=number)
    division = of_call("layers.call(*given)", setup)
    expected = 1 - least_ns("hashlib.pbkdf2_hmac(*given)", setup) / least_ns(
        "layers.call(*given)", setup
    )
    assert python_of(division) == pytest.approx(expected, abs=0.2)
    assert division.part("library-python") is None


def test_a_loop_of_python_has_no_other_part() -> None:
    assert python_of(of_call("for i in numbers: i * i", "numbers = range(100)")) > 0.95


def test_a_function_in_c_takes_nearly_all_of_its_call() -> None:
    division = of_call("hashlib.pbkdf2_hmac('sha256', b'a', b'b', 200)", "import hashlib")
    assert python_of(division) < 0.2, "200 rounds of a hash take far longer than Python"


def test_a_call_that_waits_is_said_to_be_in_the_operating_system() -> None:
    division = of_call("time.sleep(1e-4)", "import time")
    assert share_of(division.part("system")).value > 0.5


@pytest.mark.parametrize("name", ["plain", "caf\u00e9", "\u6f22\u5b57"])
def test_an_installed_package_is_told_from_a_file_of_the_user_in_any_folder(
    tmp_path: Path, name: str
) -> None:
    code = "def work():\n    for i in range(100): i * i\n"
    own, packages = tmp_path / name, tmp_path / name / "site-packages"
    packages.mkdir(parents=True)
    (own / "own_module.py").write_text(code, encoding="utf-8")
    (packages / "a_package.py").write_text(code, encoding="utf-8")
    setup = (
        f"import sys; sys.path[:0] = [{str(own)!r}, {str(packages)!r}]; import own_module,"
        " a_package"
    )
    assert of_call("own_module.work()", setup).part("library-python") is None
    of_library = of_call("a_package.work()", setup).part("library-python")
    assert of_library is not None
    assert of_library.of == ["a_package"]
    assert share_of(of_library).value > 0.7


def test_a_call_that_ends_its_process_while_it_is_sampled_is_refused_with_the_next_one() -> None:
    # The trial before the samples takes about 0.6 s; this call ends the process later than that.
    call = "os._exit(7) if time.monotonic() > began + 0.8 else 0"
    with pytest.raises(UsageError):
        try_statements(CallSpec(calls=[call, "0 if began else 1"], setup=ENDING, first=True))


def test_a_system_that_allows_no_samples_leaves_the_answer_without_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(thread_sampler._Stopper, "_request", lambda self, request, data=0: -1)
    (found,) = try_statements(CallSpec(calls=["len(x)"], setup="x = []", first=True)).found
    assert found.division is not None
    assert found.division.parts == []
    assert found.first is not None


def test_an_unknown_interpreter_is_refused_and_not_misread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(Unavailable) as refused:
        this_thread(Phase())
    assert code_of(refused.value.reason) == "sampling-needs-linux"


@pytest.mark.skipif(
    sys.platform != "linux", reason="the memory of a process is a file on Linux only"
)
def test_a_layout_that_does_not_lead_to_the_running_frame_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Elsewhere(sampled_thread._Places):
        def __init__(self, memory: int) -> None:
            super().__init__(memory)
            self._nowhere = ctypes.create_string_buffer(1024)
            self.state = ctypes.addressof(self._nowhere)

    monkeypatch.setattr(sampled_thread, "_Places", Elsewhere)
    with pytest.raises(Unavailable) as refused:
        this_thread(Phase())
    assert code_of(refused.value.reason) == "interpreter-layout-unknown"


def test_no_division_is_made_where_no_first_answer_is_asked_for() -> None:
    (found,) = try_statements(CallSpec(calls=["len(x)"], setup="x = []")).found
    assert found.division is None
