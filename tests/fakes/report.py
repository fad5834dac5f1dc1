"""Fingerprints made up for the report's tests: fake adapters, round numbers, every status."""

from __future__ import annotations

from typing import Any

import msgspec

from overhead.results import (
    Api,
    Caller,
    Comparison,
    Dependency,
    Figure,
    Fingerprint,
    Gpu,
    LeftOut,
    Machine,
    MissingStack,
    Params,
    Pattern,
    Point,
    Record,
    Status,
    Why,
)

ADAPTER = "Fake Adapter (one, 256 bits)"
STAGES = (
    "create_encoder",
    "begin_pass",
    "set_pipeline",
    "set_bind_group",
    "dispatch",
    "end",
    "finish",
    "submit",
)


H200 = Machine(
    id="0123456789ab",
    cpu="Intel(R) Xeon(R) Processor",
    cores=16,
    memory_gib=128,
    gpus=[Gpu(name="NVIDIA H200")],
)
"""A machine of a kind that the committed table of next-run ranges knows."""


def figure(
    name: str, value: float | None, status: Status = "ok", width: float = 0.02, reason: Why = ""
) -> Figure:
    """A figure with an interval of ``width`` (relative) on both sides."""
    low, high = (
        (None, None) if value is None else sorted((value * (1 - width), value * (1 + width)))
    )
    return Figure(
        name=name, value=value, low=low, high=high, status=status, reason=reason, processes=3
    )


def record(
    stack: str = "wgpu-native", pattern: Pattern = "per-submit", each: float | None = 20_000.0,
    fixed: float = 60_000.0, *,
    caller: Caller = "binding", api: Api = "Vulkan", adapter: str = ADAPTER, unit: str = "dispatch",
    status: Status = "ok", reason: Why = "",
    params: Params | None = None, software: bool = False, executes: bool = True,
    dependency: Dependency = "chained", more: tuple[Figure, ...] = (),
) -> Record:  # fmt: skip
    """A record whose figures follow from ``each`` and ``fixed`` (ns); without ``each`` it has
    none.
    """
    figures: list[Figure] = []
    curve: list[Point] = []
    if each is not None:
        figures = [
            figure("issue", each * 0.7),
            figure("host", each * 0.8),
            figure("complete", each, status, reason=reason),
            figure("fixed", fixed, width=0.1),
            figure("naive", each + fixed),
            figure("naive_idle", each + 3 * fixed),
            figure("legacy", each + fixed / 100),
            figure("empty_wait", fixed / 8),
            figure("knee_n", 600.0),
            figure("first", 80e6),
            figure("device_busy", each * 0.5),
        ]
        totals = {n: fixed + each * n for n in (0, 1, 2, 4, 16, 64, 256, 1024, 4096)}
        curve = [
            Point(n=n, issue=0.7 * each * n, total=t, q1=0.95 * t, q3=1.1 * t)
            for n, t in totals.items()
        ]
    return Record(
        stack=stack,
        api=api,
        adapter=adapter,
        software=software,
        executes=executes,
        pattern=pattern,
        caller=caller,
        dependency=dependency,
        unit=unit,
        workload="step",
        params=params or {},
        status=status,
        reason=reason,
        bound="host",
        figures=[*figures, *more],
        curve=curve,
    )


def share(name: str, of: Record, against: Record, difference: float) -> Comparison:
    """A comparison of two records with the given difference in ns, and the ratio of their host
    times, else 2.
    """
    times = (
        (of.value("host") or 2.0) / (against.value("host") or 1.0) if against.value("host") else 2.0
    )
    ratio = Figure(name="ratio", unit="ratio", value=times, low=0.98 * times, high=1.02 * times)
    return Comparison(
        name=name,
        of=of.key,
        against=[against.key],
        figures=[figure("difference", difference), ratio],
    )


def fingerprint(*records: Record, **fields: Any) -> Fingerprint:
    """A fingerprint of these records on a made-up machine."""
    base: dict[str, Any] = {
        "schema_version": 1,
        "method_version": 1,
        "created": "2026-01-02T03:04:05Z",
        "profile": "quick",
        "machine": Machine(
            id="0123456789ab", cpu="Fake CPU", cores=2, memory_gib=8, gpus=[Gpu(name="Fake GPU")]
        ),
        "records": list(records),
    }
    return Fingerprint(**{**base, **fields})


def crowded() -> Fingerprint:
    """As many targets and cases as a real run holds, with every status."""
    records: list[Record] = []
    comparisons: list[Comparison] = []
    wgpu = [
        ("Vulkan", "llvmpipe (LLVM 15.0.6, 256 bits)"),
        ("OpenGL", "llvmpipe (LLVM 15.0.6, 256 bits)"),
        ("Vulkan", "SwiftShader Device (Subzero) (0x0000C0DE)"),
    ]
    targets = [("wgpu-native", *w) for w in wgpu] + [
        ("dawn", *wgpu[2]),
        ("vulkan", *wgpu[0]),
        ("vulkan", *wgpu[2]),
    ]
    base: Params = {"wait": "poll", "bindgroup": "once"}
    patterns: tuple[Pattern, ...] = (
        "per-submit",
        "per-k",
        "per-pass",
        "one-pass",
        "fused",
        "wait-each",
        "read-each",
    )
    for index, (stack, api, adapter) in enumerate(targets):
        scale = 20_000.0 * (1 + index / 3)
        kind: dict[str, Any] = {
            "stack": stack,
            "api": api,
            "adapter": adapter,
            "software": index != 3,
        }
        kind["caller"] = "ffi" if stack == "vulkan" else "binding"
        for p, pattern in enumerate(patterns):
            params = base | ({"k": 16} if pattern == "per-k" else {})
            unit = "step" if pattern == "fused" else "dispatch"
            more = tuple(
                figure(n, scale * f) for n, f in (("p50", 3), ("p95", 5), ("p99", 9)) if p > 4
            )
            records.append(
                record(
                    pattern=pattern,
                    each=scale / 1.9**p,
                    unit=unit,
                    params=params,
                    more=more,
                    **kind,
                )
            )
        for key, value in (
            ("wait", "map"),
            ("bindgroup", "rotated"),
            ("bindings", 8),
            ("parameters", "write_buffer"),
        ):
            records.append(record(each=scale * 1.2, params={**base, key: value}, **kind))
        chain = [records[-11]]
        callers: list[Caller] = ["ffi", "native"] if stack != "vulkan" else ["native"]
        for c, caller in enumerate(callers):
            stages = tuple(
                figure(f"stage:{n}", scale / 9 / (c + 1)) for n in STAGES if caller == "native"
            )
            if stages:
                stages += (
                    figure("unstaged", 0.7 * scale / (c + 2)),
                    figure("stages_gap", 0.01 * scale),
                )
            chain.append(
                record(each=scale / (c + 2), more=stages, params=base, **{**kind, "caller": caller})
            )
        records += chain[1:]
        names = (
            ("binding-share", "interpreter-share") if stack != "vulkan" else ("interpreter-share",)
        )
        comparisons += [
            share(n, a, b, scale / 4) for n, a, b in zip(names, chain, chain[1:], strict=False)
        ]
        if stack != "vulkan":
            comparisons.append(share("python-share", chain[0], chain[2], scale / 2))
        parts = {
            "per_submit": scale / 2,
            "per_pass": scale / 4,
            "per_dispatch": scale / 20,
            "per_bind": -scale / 90,
        }
        comparisons.append(
            Comparison(
                name="marginal",
                of=chain[0].key,
                figures=[figure(n, v, width=3.0 if v < 0 else 0.1) for n, v in parts.items()],
            )
        )
    records += [
        record("numpy", each=400.0, fixed=90.0, api="CPU", adapter="CPU", unit="launch"),
        record(
            "torch",
            each=1_900.0,
            fixed=120.0,
            api="CPU",
            adapter="CPU",
            unit="launch",
            status="noisy",
            reason="half-width 14 % over 10 %",
        ),
        record("dawn", api="Null", adapter="Null backend", executes=False, each=9_000.0),
        record(
            "chromium",
            each=None,
            adapter="SwiftShader",
            software=True,
            caller="browser",
            status="failed",
            reason="the browser ended with signal 11",
        ),
        record(
            "dawn",
            "replay",
            each=None,
            adapter=wgpu[2][1],
            status="unverified",
            reason="7 of 8 units ran",
            params=base,
        ),
    ]
    return fingerprint(
        *records,
        comparisons=comparisons,
        unavailable=[
            MissingStack(stack="cuda-driver", reason="no NVIDIA driver: libcuda.so.1 not found"),
            MissingStack(stack="jax", reason="jax is not installed", mend="make report EXTRAS=jax"),
        ],
        left_out=[
            LeftOut(target=records[0].target_key, case=f"case {i}", reason="over the budget")
            for i in range(9)
        ],
        versions={"wgpu": "0.32.0", "numpy": "2.5.0"},
        kernels={"step.wgsl": "ab" * 32},
        volatile={"governor": "performance", "load": 0.25, "layers": []},
        flags=["fake: 2 of 3 processes measured"],
    )


CUDA_GPU: dict[str, Any] = {"api": "CUDA", "adapter": "Fake GPU", "unit": "launch"}
CUDA_STEP: Params = {"alloc": "in-place", "operand": "number", "wait": "stream"}
_DRIVER_PARAMS: Params = {"arguments": 1, "stream": "default", "wait": "stream"}
MAKING = (
    figure("making:capture", 2_000.0, width=0),
    figure("making:capture:fixed", 10_000.0, width=0),
    figure("making:instantiate", 2_000.0, width=0),
    figure("making:instantiate:fixed", 20_000.0, width=0),
    figure("making:upload", 1_000.0, width=0),
    figure("making:upload:fixed", 10_000.0, width=0),
    figure("making:update", 600.0),
    figure("making:update:fixed", -50.0),
)
_CAPTURE_VERDICTS = {
    "captured item": "forbidden: RuntimeError: not permitted",
    "captured h2d-pinned": "kept as 1 node",
    "captured nothing": "removed",
}


def torch(each: float | None, act: str = "", every: int = 1, **fields: Any) -> Record:
    """A launch through torch; with ``act`` a synchronisation after each ``every`` launches."""
    if not act:
        return record("torch", each=each, **{**CUDA_GPU, "params": CUDA_STEP, **fields})
    params = {**fields.pop("params", CUDA_STEP), "sync": act, "every": every}
    unit = "launch" if every == 1 else f"{every} launches"
    return record(
        "torch",
        each=each,
        **{**CUDA_GPU, "pattern": "read-each", "unit": unit, "params": params, **fields},
    )


def driver(each: float) -> Record:
    """A launch through the CUDA driver API."""
    return record("cuda-driver", each=each, **CUDA_GPU, params=_DRIVER_PARAMS)


def replay(each: float, more: tuple[Figure, ...] = MAKING, maker: str = "driver") -> Record:
    """A node of a replayed graph, with what making the graph costs."""
    return record(
        "cuda-graph",
        "replay",
        each,
        **{**CUDA_GPU, "unit": "node"},
        params={"maker": maker},
        more=more,
    )


def graph_launch(window: dict[str, str], maker: str = "torch") -> Record:
    """A launch of a graph with one node."""
    own = record("cuda-graph", "launches", 2_000.0, **CUDA_GPU, params={"maker": maker, "nodes": 1})
    return msgspec.structs.replace(own, window=window)


def cuda_run() -> Fingerprint:
    """Launches, graphs and synchronisations on a CUDA device."""
    mlp = {"wait": "stream", "shapes": "fixed"}
    forward = msgspec.structs.replace(
        torch(50_000.0, params=mlp, unit="step"), workload="mlp-forward"
    )
    read = msgspec.structs.replace(
        torch(90_000.0, "item", params=mlp, unit="step"), workload="mlp-forward"
    )
    return fingerprint(
        driver(3_000.0),
        record("cuda-driver", each=2_500.0, **CUDA_GPU, params=_DRIVER_PARAMS, caller="native"),
        replay(1_000.0),
        graph_launch(_CAPTURE_VERDICTS),
        torch(5_000.0),
        torch(15_000.0, "item"),
        torch(60_000.0, "item", 10),
        torch(8_000.0, "stream"),
        torch(None, "nonzero", status="failed", reason="out of memory"),
        forward,
        read,
        record(
            "torch-compile",
            each=27_000.0,
            **{**CUDA_GPU, "unit": "step"},
            params={"mode": "default", "ops": 1},
        ),
    )


def network(workload: str, each: float, act: str = "", shapes: str = "fixed") -> Record:
    """A step of the small network, perhaps with a synchronisation."""
    own = torch(each, act, params={"wait": "stream", "shapes": shapes}, unit="step")
    return msgspec.structs.replace(own, workload=workload)


def training_run() -> Fingerprint:
    """Forward passes and training steps, with and without synchronisations."""
    return fingerprint(
        network("mlp-forward", 300_000.0),
        network("mlp-forward", 340_000.0, "item"),
        network("mlp-train", 900_000.0),
        network("mlp-train", 1_000_000.0, "item"),
        network("mlp-train", 950_000.0, "h2d"),
        network("mlp-forward", 310_000.0, shapes="varying"),
        network("mlp-forward", 360_000.0, "item", "varying"),
        network("mlp-train", 960_000.0, shapes="varying"),
        network("mlp-train", 1_200_000.0, "item", "varying"),
    )
