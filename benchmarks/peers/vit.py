#!/usr/bin/env python3
"""Vision transformer, as the test program tutti_network_values computes it (vit: two layers of 48 channels, patches of 8 x 8; vit-full: ViT-Ti/16
at 224 x 224), in PyTorch with scaled_dot_product_attention. Sizes are told from the tensors in the file; heads are three."""
import sys

import torch
from torch import nn
from torch.nn import functional as F

import values


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.qkv, self.proj, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads

    def forward(self, x):
        q, k, v = (t.unflatten(2, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, 2))
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(width, eps=1e-6), Attention(width, heads)
        self.norm2, self.mlp = nn.LayerNorm(width, eps=1e-6), Mlp(width)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Vit(nn.Module):
    def __init__(self, classes, channels, patch, patches, depth, width, heads):
        super().__init__()
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, patches + 1, width))
        self.patch_embed = nn.Module()
        self.patch_embed.proj = nn.Conv2d(channels, width, patch, patch)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, classes)

    def forward(self, image):
        x = self.patch_embed.proj(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


def main():
    args = values.arguments(__doc__)
    tensors = values.safetensors(args.file)
    width, channels, patch, _ = tensors["weight.patch_embed.proj.weight"].shape
    depth = 1 + max(int(name.split(".")[2]) for name in tensors if name.startswith("weight.blocks."))
    classes, positions = tensors["weight.head.weight"].shape[0], tensors["weight.pos_embed"].shape[-2]
    model = Vit(classes, channels, patch, positions - 1, depth, width, 3)
    return values.run(model, tensors, None, None, lambda out, target: F.mse_loss(out, target.to(out.dtype)), args, floor=1e-6)


if __name__ == "__main__":
    sys.exit(main())
