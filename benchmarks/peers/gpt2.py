#!/usr/bin/env python3
"""GPT-2, as the test program tutti_network_values computes it (gpt2: two layers of 48 channels, three heads; gpt2-full: the published 124 M), in PyTorch
with scaled_dot_product_attention. Sizes are told from the tensors in the file. `out` is -log p of each token, 0 where none is known."""
import sys

import torch
from torch import nn
from torch.nn import functional as F

import values


class Attention(nn.Module):
    def __init__(self, width, heads, dropout=0.0):
        super().__init__()
        self.c_attn, self.c_proj, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads
        self.dropout = dropout  # of keys

    def forward(self, x):
        q, k, v = (t.unflatten(2, (self.heads, -1)).transpose(1, 2) for t in self.c_attn(x).chunk(3, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout if self.training else 0.0)
        return self.c_proj(y.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc, self.c_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, width, heads, dropout=0.0):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), Attention(width, heads, dropout)
        self.ln_2, self.mlp = nn.LayerNorm(width), Mlp(width)
        self.drop = nn.Dropout(dropout) if dropout > 0 else nn.Identity()

    def forward(self, x):
        x = x + self.drop(self.attn(self.ln_1(x)))
        return x + self.drop(self.mlp(self.ln_2(x)))


class Gpt2(nn.Module):
    def __init__(self, vocabulary=50257, context=1024, depth=12, width=768, heads=12, dropout=0.0):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.drop = nn.Dropout(dropout) if dropout > 0 else nn.Identity()
        self.h = nn.ModuleList(Block(width, heads, dropout) for _ in range(depth))
        self.ln_f = nn.LayerNorm(width)

    def logits(self, tokens):
        x = self.drop(self.wte(tokens) + self.wpe.weight[: tokens.shape[1]])
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)

    def initialise(self):
        """As Tutti's, and the published code."""
        for name, p in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(p)
            elif p.dim() == 2:
                nn.init.normal_(p, std=0.02 / ((2 * len(self.h)) ** 0.5 if name.endswith("c_proj.weight") else 1))


def load_transposed(tensors):
    """Files hold the layers' weights as [inputs, outputs]."""
    for name in tensors:
        if name.startswith("weight.") and name.split(".")[-2].startswith("c_") and tensors[name].ndim == 2:
            tensors[name] = tensors[name].T.copy()


def main():
    args = values.arguments(__doc__)
    tensors = values.safetensors(args.file)
    wte, wpe = tensors["weight.wte.weight"], tensors["weight.wpe.weight"]
    depth = 1 + max(int(name.split(".")[2]) for name in tensors if name.startswith("weight.h."))
    load_transposed(tensors)
    heads = 3 if wte.shape[1] == 48 else wte.shape[1] // 64
    model = Gpt2(wte.shape[0], wpe.shape[0], depth, wte.shape[1], heads)
    tokens, target = (torch.from_numpy(tensors[name]).long() for name in ("in", "target"))
    surprise = values.Surprise(model, lambda: model.logits(tokens), target)
    return values.run(surprise, tensors, None, None, lambda out, _: out.sum() / (target >= 0).sum(), args, floor=1e-6)


if __name__ == "__main__":
    sys.exit(main())
