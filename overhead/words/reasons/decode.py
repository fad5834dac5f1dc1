"""Why the decoders of tokens cannot be measured on a device, or are not verified."""

TEMPLATES = {
    "no-such-workload": "no workload {workload} here",
    "graphs-are-of-cuda": "graphs are CUDA's",
    "weights-too-large-for-page": "the weights of {workload} are too large to send to a page",
    "no-tokens-in-page": "in a page tokens have no {pattern} from {caller}",
    "no-tokens-by-caller": "tokens have no {pattern} from {caller}",
    "device-memory-short": "the device has {free:,} bytes free, {missing:,} fewer than the program needs",
    "no-such-pattern": "no {pattern} here",
    "differs-from-float64": "differs from float64: {agreement}",
    "position-wrong": "after {tokens} tokens the position is {position}, not {expected}",
    "token-differs": "a token at position {position} is not the one that the first run gave",
    "logits-differ": "the logits of token {token} differ by {difference:.2g} from those of the first run",
    "no-tokens-here": "tokens have no {pattern} here",
    "torch-cannot-export": "torch cannot export to ONNX: {text}",
    "provider-finds-no-adapter": "the WebGPU provider finds no adapter",
    "nodes-run-elsewhere": "most nodes do not run on {provider}: {nodes}",
    "host-memory-short": "the host has {free:,} bytes free, {missing:,} fewer than the weights need",
    "padding-not-run": "{tokens} tokens ran {found} of {expected} added dispatches",
    "decoder-needs": (
        "{weights_gb:.1f} GB of weights on each device and in each worker; the first worker also needs "
        "{reference_gb:.1f} GB for a reference in float64; opening each process takes about {opening_s:.0f} s"
    ),
}
