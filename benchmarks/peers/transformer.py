#!/usr/bin/env python3
"""The Transformer of Vaswani et al., as the test program tutti_network_values computes it (transformer: two and two layers of 48 channels, three heads;
transformer-full: base with a vocabulary of 37,000), in PyTorch with scaled_dot_product_attention. Sizes are told from the tensors in the file. `out` is
-log p of each token, 0 where none is known; the loss has a label smoothing of 0.1."""
import sys

import torch
from torch import nn
from torch.nn import functional as F

import values


def sinusoids(positions, width, dtype):
    angle = torch.arange(positions, dtype=torch.float64)[:, None] / 10000 ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
    return torch.stack([angle.sin(), angle.cos()], 2).flatten(1).to(dtype)


class Attention(nn.Module):
    def __init__(self, width, heads, across):
        super().__init__()
        self.heads, self.across = heads, across
        if across:
            self.q_proj, self.kv_proj = nn.Linear(width, width, bias=False), nn.Linear(width, 2 * width, bias=False)
        else:
            self.in_proj = nn.Linear(width, 3 * width, bias=False)
        self.out_proj = nn.Linear(width, width, bias=False)

    def forward(self, x, memory, mask, causal=False):
        parts = [self.q_proj(x), *self.kv_proj(memory).chunk(2, 2)] if self.across else self.in_proj(x).chunk(3, 2)
        q, k, v = (t.unflatten(2, (self.heads, -1)).transpose(1, 2) for t in parts)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        return self.out_proj(y.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, width, heads, hidden, decodes):
        super().__init__()
        self.self_attn, self.norm1, self.decodes = Attention(width, heads, False), nn.LayerNorm(width), decodes
        if decodes:
            self.cross_attn, self.norm3 = Attention(width, heads, True), nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.linear1, self.linear2 = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x, memory, mask):
        x = self.norm1(x + self.self_attn(x, x, None if self.decodes else mask, self.decodes))
        if self.decodes:
            x = self.norm2(x + self.cross_attn(x, memory, mask))
        last = self.norm3 if self.decodes else self.norm2
        return last(x + self.linear2(F.relu(self.linear1(x))))


class Stack(nn.Module):
    def __init__(self, depth, *sizes):
        super().__init__()
        self.layers = nn.ModuleList(Layer(*sizes) for _ in range(depth))


class Transformer(nn.Module):
    def __init__(self, vocabulary=37000, depth=6, width=512, heads=8, hidden=2048):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.encoder, self.decoder = Stack(depth, width, heads, hidden, False), Stack(depth, width, heads, hidden, True)

    def embedded(self, tokens):
        x = self.embedding(tokens.clamp(min=0)) * (tokens >= 0)[:, :, None] * self.embedding.embedding_dim**0.5
        return x + sinusoids(tokens.shape[1], x.shape[2], x.dtype)

    def logits(self, source, tokens):
        mask = (source >= 0)[:, None, None, :]
        memory, y = self.embedded(source), self.embedded(tokens)
        for layer in self.encoder.layers:
            memory = layer(memory, memory, mask)
        for layer in self.decoder.layers:
            y = layer(y, memory, mask)
        return F.linear(y, self.embedding.weight)


def main():
    args = values.arguments(__doc__)
    tensors = values.safetensors(args.file)
    embedding = tensors["weight.embedding.weight"]
    depth = 1 + max(int(name.split(".")[3]) for name in tensors if name.startswith("weight.encoder.layers."))
    heads = 3 if embedding.shape[1] == 48 else embedding.shape[1] // 64
    model = Transformer(embedding.shape[0], depth, embedding.shape[1], heads, tensors["weight.encoder.layers.0.linear1.weight"].shape[0])
    source, tokens, target = (torch.from_numpy(tensors[name]).long() for name in ("source", "in", "target"))
    surprise = values.Surprise(model, lambda: model.logits(source, tokens), target)

    def loss_of(_, __):
        return F.cross_entropy(surprise.logits, torch.where(target >= 0, target, -1), ignore_index=-1, label_smoothing=0.1)

    return values.run(surprise, tensors, None, None, loss_of, args, floor=1e-6)


if __name__ == "__main__":
    sys.exit(main())
