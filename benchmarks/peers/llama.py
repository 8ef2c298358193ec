#!/usr/bin/env python3
"""Llama, as the test program tutti_network_values computes it (llama: two layers of 48 channels, six heads that share two heads of keys, base 500),
in PyTorch with scaled_dot_product_attention. `out` is -log p of each token, 0 where none is known."""
import sys

import torch
from torch import nn
from torch.nn import functional as F

import values


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * self.weight


def turned(x, base):
    """x [N, heads, T, D]: channel i turns with channel i + D / 2."""
    half = x.shape[-1] // 2
    angle = torch.outer(torch.arange(x.shape[2], dtype=torch.float64), base ** -(torch.arange(half, dtype=torch.float64) / half))
    turn = torch.polar(torch.ones_like(angle), angle)
    z = torch.complex(x[..., :half].double(), x[..., half:].double()) * turn
    return torch.cat([z.real, z.imag], -1).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, width, heads, key_heads, base):
        super().__init__()
        self.width, self.base, head = width, base, width // heads
        self.q_proj, self.o_proj = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k_proj, self.v_proj = nn.Linear(width, key_heads * head, bias=False), nn.Linear(width, key_heads * head, bias=False)
        self.head, self.group = head, heads // key_heads

    def forward(self, x):
        q, k, v = (layer(x).unflatten(2, (-1, self.head)).transpose(1, 2) for layer in (self.q_proj, self.k_proj, self.v_proj))
        k, v = (t.repeat_interleave(self.group, 1) for t in (turned(k, self.base), v))
        y = F.scaled_dot_product_attention(turned(q, self.base), k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, width, heads, key_heads, hidden, base):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = RmsNorm(width), RmsNorm(width)
        self.self_attn, self.mlp = Attention(width, heads, key_heads, base), Mlp(width, hidden)

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    def __init__(self, vocabulary, depth, width, heads, key_heads, hidden, base=10000.0):
        super().__init__()
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(vocabulary, width)
        self.model.layers = nn.ModuleList(Block(width, heads, key_heads, hidden, base) for _ in range(depth))
        self.model.norm = RmsNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)

    def logits(self, tokens):
        x = self.model.embed_tokens(tokens)
        for block in self.model.layers:
            x = block(x)
        return self.lm_head(self.model.norm(x))


def main():
    args = values.arguments(__doc__)
    tensors = values.safetensors(args.file)
    vocabulary, width = tensors["weight.model.embed_tokens.weight"].shape[:2]
    depth = 1 + max(int(name.split(".")[3]) for name in tensors if name.startswith("weight.model.layers."))
    hidden = tensors["weight.model.layers.0.mlp.up_proj.weight"].shape[0]
    model = Llama(vocabulary, depth, width, 6, 2, hidden, 500.0)
    tokens, target = (torch.from_numpy(tensors[name]).long() for name in ("in", "target"))
    surprise = values.Surprise(model, lambda: model.logits(tokens), target)
    return values.run(surprise, tensors, None, None, lambda out, _: out.sum() / (target >= 0).sum(), args, floor=1e-6)


if __name__ == "__main__":
    sys.exit(main())
