"""Why the decoders of tokens cannot be measured on a device, or are not verified."""

TEMPLATES = {
    "no-such-workload": "no workload {workload} here",
    "graphs-are-of-cuda": "only CUDA has graphs",
    "weights-too-large-for-page": "the weights of {workload} are too large to send to a page",
    "no-tokens-in-page": "a page does not decode tokens with {pattern} from {caller}",
    "no-tokens-by-caller": "this stack does not decode tokens with {pattern} from {caller}",
    "device-memory-short": "the device has {free:,} bytes free; the program needs {missing:,} more",
    "no-such-pattern": "no {pattern} here",
    "differs-from-float64": "the result differs from float64: {agreement}",
    "position-wrong": "after {tokens} tokens the position is {position}; it must be {expected}",
    "token-differs": "at position {position} the token differs from that of the first run",
    "logits-differ": (
        "the logits of token {token} differ by {difference:.2g} from those of the first run"
    ),
    "no-tokens-here": "this stack does not decode tokens with {pattern}",
    "torch-cannot-export": "torch cannot export to ONNX: {text}",
    "provider-finds-no-adapter": "ONNX Runtime's WebGPU provider finds no adapter",
    "nodes-run-elsewhere": "most operations do not run on {provider}: {nodes}",
    "host-memory-short": (
        "this machine has {free:,} bytes of memory free; the weights need {missing:,} more"
    ),
    "padding-not-run": "{tokens} tokens ran {found} of the {expected} added dispatches",
    "decoder-needs": (
        "needs {weights_gb:.1f} GB for weights on each device and in each process; the first"
        " process also needs {reference_gb:.1f} GB for a reference in float64; each process takes"
        " about {opening_s:.0f} s to start"
    ),
}
