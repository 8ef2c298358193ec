#!/usr/bin/env python3
"""Encoder of sequences, as the test program tutti_network_values computes it (sequence: two layers of 48 channels on signals in pieces of 4, of which some
positions are padding, five numbers of a sequence; sequence-samples: without padding, two numbers at each sample), in PyTorch with
scaled_dot_product_attention. Sizes are told from the tensors in the file; heads are three."""
import sys

import torch
from torch import nn
from torch.nn import functional as F

import values
from transformer import sinusoids
from vit import Mlp

HEADS = 3


def heads(x):
    return x.unflatten(2, (HEADS, -1)).transpose(1, 2)


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, mask):
        q, k, v = (heads(t) for t in self.qkv(x).chunk(3, 2))
        return self.proj(F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(width, eps=1e-6), Attention(width)
        self.norm2, self.mlp = nn.LayerNorm(width, eps=1e-6), Mlp(width)
        self.mlp.fc1, self.mlp.fc2 = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x, mask):
        x = x + self.attn(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))


class Pool(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.kv = nn.Parameter(torch.zeros(1, 1, width)), nn.Linear(width, 2 * width)

    def forward(self, x, mask):
        k, v = (heads(t) for t in self.kv(x).chunk(2, 2))
        q = heads(self.query.expand(len(x), -1, -1))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(1)


class SequenceEncoder(nn.Module):
    def __init__(self, tensors, padding):
        super().__init__()
        width, channels, piece = tensors["weight.embed.proj.weight"].shape
        depth = 1 + max(int(name.split(".")[2]) for name in tensors if name.startswith("weight.blocks."))
        hidden = tensors["weight.blocks.0.mlp.fc1.weight"].shape[0]
        self.embed = nn.Module()
        self.embed.proj = nn.Conv1d(channels, width, piece, piece)
        self.blocks = nn.ModuleList(Block(width, hidden) for _ in range(depth))
        self.norm, self.mask = nn.LayerNorm(width, eps=1e-6), None
        if "weight.pool.query" in tensors:
            self.pool, self.head = Pool(width), nn.Linear(width, tensors["weight.head.weight"].shape[0])
        else:
            self.pool, self.head = None, nn.ConvTranspose1d(width, tensors["weight.head.weight"].shape[1], piece, piece)
        if padding is not None:
            self.mask = (torch.from_numpy(padding) >= 0)[:, None, None, :]

    def forward(self, signals):
        x = self.embed.proj(signals).transpose(1, 2)
        x = x + sinusoids(x.shape[1], x.shape[2], x.dtype)
        for block in self.blocks:
            x = block(x, self.mask)
        x = self.norm(x)
        return self.head(self.pool(x, self.mask)) if self.pool else self.head(x.transpose(1, 2))


def main():
    args = values.arguments(__doc__)
    tensors = values.safetensors(args.file)
    model = SequenceEncoder(tensors, tensors.get("source"))
    return values.run(model, tensors, None, None, lambda out, target: F.mse_loss(out, target.to(out.dtype)), args, floor=1e-6)


if __name__ == "__main__":
    sys.exit(main())
