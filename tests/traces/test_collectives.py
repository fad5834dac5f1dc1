"""What is a collective: by the names of kernels, and by the operation that issues them."""

from __future__ import annotations

from pathlib import Path

import pytest

from overhead.traces.collectives import collective_in, communicates, kind_of_work
from overhead.traces.formats import read_trace_file
from tests.traces.test_trace_faults import Program
from tests.traces.test_trace_file import kineto

EXCHANGES = [
    "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)",
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
    "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)",
    "ncclDevKernel_AllGather_RING_LL(x)",
    "ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_bf16(x)",
    "ncclSymDevKernel_AllGather_LL(x)",
    "rcclGenericKernel(x)",
    "void rcclKernel_AllGather(x)",
    "mscclKernel_Sum_half_Simple(x)",
    "void mscclpp::collective::allreduceNvls(x)",
    "oneccl_allreduce_kernel",
    "void oneapi::ccl::x",
    "void sglang::cross_device_reduce_1stage<half,2>(sglang::RankData*)",
    "void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(x)",
    "void vllm::allreduce_fusion",
    "void one_shot_all_reduce_kernel<c10::BFloat16,8>(x)",
    "void tensorrt_llm::kernels::oneShotAllReduceKernel<x>",
    "void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport<x>",
    "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<x>",
    "void deep_ep::intranode::dispatch<8,768>(x)",
    "void deep_ep::internode_ll::combine<x>",
    "void deep_ep::intranode::notify_dispatch<8>(x)",
    "void quickreduce::allreduce_prototype_twoshot<x>",
    "void aiter::reduce_scatter_cross_device_store<x>",
    "moeA2ADispatchKernel<1>(x)",
    "void tensorrt_llm::kernels::moe_comm::moeA2ACombineKernel<x>",
    "mori::moe::EpDispatchIntraNodeKernel_bf16",
    "EpCombineIntraNodeKernel",
    "nvshmem_alltoall",
    "void nvshmemi_transfer",
    "hcom_allReduce__123",
    "HcclAllReduce",
    "hccl_broadcast",
    "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16>",
    "userbuffers_fp16_sum_inplace_gpu_rr_rw_ag<4>",
    "void kuserbuffers_pullsendrecv(x)",
    "all_to_all_vdev(x)",
    "void tensorrt_llm::mnnvl::oneshotAllreduceFusionKernel<x>",
    "triton_all_gather_matmul",
    "void c10d::symmetric_memory::barrier_kernel(x)",
    "void vllm::act_and_mul::reduce_scatter",
    "void lamport_style_one_shot_all_reduce_norm",
    "nccl_all_reduce",
]
COMPUTES = [
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
    "void cub::DeviceReduceKernel<x>",
    "block_reduce_sum",
    "void blockReduceSum<float>",
    "void warp_allreduce<4>",
    "warpAllReduce(x)",
    "BlockAllReduce",
    "block_all_reduce_sum",
    "void vllm::rms_norm_kernel<c10::Half>",
    "void at::native::_scatter_gather_elementwise_kernel<128, 8>",
    "scatter_reduce_kernel",
    "void deep_ep::layout::get_dispatch_layout<32,8>(x)",
    "moe_align_block_size_kernel",
    "vllm::moe::topkGatingSoftmax",
    "aiter::local_device_load_rmsnorm_naive",
    "nvjet_tst_128x8_64x12",
    "ampere_bf16_s16816gemm",
    "flash_fwd_splitkv_combine_kernel",
    "void flash::flash_fwd_splitkv_combine_kernel<x>",
    "triton_red_fused_all_1",
    "indexing_backward",
    "moeA2APrepareDispatchKernel",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<bool>>",
    "cclean_kernel",
    "broadcast_kernel",
    "accl_x",
    "gather_all_tokens",
    "cooperative_groups_reduce",
    "shared_gather",
    "paged_attention_v2_reduce_kernel",
]


@pytest.mark.parametrize("name", EXCHANGES)
def test_a_kernel_that_exchanges_is_a_collective(name: str) -> None:
    assert communicates(name)
    assert kind_of_work(name, exchanges=False) == "collective"


@pytest.mark.parametrize("name", COMPUTES)
def test_a_kernel_that_only_looks_like_one_computes(name: str) -> None:
    assert not communicates(name)
    assert kind_of_work(name, exchanges=False) == "compute"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Memcpy PtoP (Device -> Device)", "copy"),
        ("Memcpy DtoH (Device -> Pageable)", "copy"),
        ("__amd_rocclr_copyBuffer", "copy"),
        ("Memset (Device)", "fill"),
        ("__amd_rocclr_fillBufferAligned", "fill"),
    ],
)
def test_copies_and_fills_are_no_collectives(name: str, kind: str) -> None:
    assert kind_of_work(name, exchanges=False) == kind


@pytest.mark.parametrize(
    ("name", "collective"),
    [
        ("nccl:all_to_all", "all_to_all"),
        ("xccl:all_reduce", "all_reduce"),
        ("c10d::allreduce_", "allreduce"),
        ("_c10d_functional::all_gather_into_tensor", "all_gather_into_tensor"),
        ("_c10d_functional::wait_tensor", ""),
        ("symm_mem::one_shot_all_reduce", "one_shot_all_reduce"),
        ("aten::mm", ""),
        ("nccl_helper", ""),
    ],
)
def test_the_operation_tells_the_collective(name: str, collective: str) -> None:
    assert collective_in(name) == collective


def test_what_a_collective_issues_itself_exchanges_and_its_preparation_does_not(
    tmp_path: Path,
) -> None:
    """In one operation: a copy that an inner operation makes, a kernel of a name that tells
    nothing, and a copy between devices.
    """
    program = Program()
    program.step(0, start=0, length_us=1000)
    program.span("cpu_op", "symm_mem::all_gather", start=10, length_us=500)
    program.span("cpu_op", "aten::copy_", start=20, length_us=50)
    program.launch(called=30, starts=40, length_us=10, kernel="elementwise_kernel")
    program.launch(called=100, starts=110, length_us=10, kernel="push_kernel")
    program.launch(called=200, starts=210, length_us=10, kernel="Memcpy PtoP (Device -> Device)")
    program.span("cpu_op", "aten::to", start=600, length_us=50)
    program.launch(called=610, starts=620, length_us=10, kernel="Memcpy PtoP (Device -> Device)")
    trace = read_trace_file(kineto(tmp_path / "t.json", program.events))
    kinds = [work.kind for work in trace.steps[0].device]
    assert kinds == ["compute", "collective", "collective", "copy"]
    may_wait = [work.communicates for work in trace.steps[0].device]
    assert may_wait == [False, True, False, False], "a copy waits for nobody"
