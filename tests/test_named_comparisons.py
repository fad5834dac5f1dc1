"""Two cases are compared only if they differ on no other axes than those of a named comparison."""

from __future__ import annotations

import msgspec

from overhead.named_comparisons import comparable_pairs, is_comparable, named_comparisons
from overhead.results import Case, Scalar, Target

GPU = "A GPU"


def at(
    stack: str,
    caller: str = "native",
    adapter: str = GPU,
    pattern: str = "per-submit",
    **params: Scalar,
) -> tuple[Target, Case]:
    target = Target(stack=stack, api="Vulkan", adapter=adapter)
    return target, Case(pattern=pattern, caller=caller, params=params)  # type: ignore[arg-type]


def names(*cases: tuple[Target, Case]) -> set[str]:
    return {named.name for named, _, _ in comparable_pairs(list(cases))}


def test_cases_that_differ_in_the_caller_give_the_shares_of_binding_and_interpreter() -> None:
    callers = [at("dawn", caller, wait="any") for caller in ("binding", "ffi", "native")]
    assert names(*callers) == {"binding-share", "interpreter-share", "python-share"}


def test_callers_that_do_not_make_the_same_calls_are_not_compared() -> None:
    callers = [at("mine", caller) for caller in ("binding", "ffi", "native")]
    assert (
        names(
            *((msgspec.structs.replace(target, same_calls=False), case) for target, case in callers)
        )
        == set()
    )


def test_cases_with_different_waits_or_patterns_are_not_compared() -> None:
    assert not names(at("dawn", "binding", wait="any"), at("dawn", "native", wait="map"))
    assert not names(at("dawn", "binding"), at("dawn", "native", pattern="one-pass"))


def test_the_share_of_the_api_is_formed_only_on_the_same_adapter() -> None:
    assert names(at("dawn"), at("vulkan")) == {"api-share"}
    assert names(at("dawn"), at("vulkan", adapter="another")) == set()


def test_a_synchronised_step_is_compared_with_the_same_step_without_synchronisation() -> None:
    step = at("torch", "binding", wait="stream", shapes="fixed")
    read = at(
        "torch", "binding", pattern="read-each", wait="stream", shapes="fixed", sync="item", every=4
    )
    copied = at("torch", "binding", wait="stream", shapes="fixed", sync="h2d-pinned", every=1)
    other = at("torch", "binding", wait="stream", shapes="varying")
    assert [(n.name, a, b) for n, a, b in comparable_pairs([step, read, copied, other])] == [
        ("sync-cost", read, step),
        ("sync-cost", copied, step),
    ]


def test_host_times_of_fused_chains_are_not_compared() -> None:
    share = next(n for n in named_comparisons() if n.name == "python-share")
    for pattern, split in (("per-submit", True), ("fused", False)):
        binding, native = (at("dawn", caller, pattern=pattern) for caller in ("binding", "native"))
        assert is_comparable(share, binding, native) is split
