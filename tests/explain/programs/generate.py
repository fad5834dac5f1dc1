# bound: host
"""``generate`` of a tiny Llama: a long step with many small launches, reads and garbage."""

import torch


def build() -> object:
    from transformers import LlamaConfig, LlamaForCausalLM  # type: ignore[import-not-found,unused-ignore]

    sizes = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=1000, **sizes)).cuda().eval()
    tokens = torch.arange(1, 9, device="cuda")[None]
    return lambda: model.generate(tokens, max_new_tokens=8, min_new_tokens=8, do_sample=False, pad_token_id=0)
