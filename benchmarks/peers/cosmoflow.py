#!/usr/bin/env python3
"""CosmoFlow of MLPerf HPC in PyTorch, channels first, with weights of Tutti: one pass forward and backward."""
import sys

import torch
from torch import nn
from torch.nn import functional as F

import values


class CosmoFlow(nn.Module):
    """Five convolutions and three dense layers whose sizes are those of the weights; without dropout."""

    def __init__(self, shapes):
        super().__init__()
        self.kernel = shapes["conv1.weight"][2]
        for i in range(1, 6):
            outputs, inputs = shapes[f"conv{i}.weight"][:2]
            setattr(self, f"conv{i}", nn.Conv3d(inputs, outputs, self.kernel))
        for i in range(1, 4):
            outputs, inputs = shapes[f"fc{i}.weight"]
            setattr(self, f"fc{i}", nn.Linear(inputs, outputs))

    def forward(self, x):
        before, after = (self.kernel - 1) // 2, self.kernel // 2
        for i in range(1, 6):
            x = getattr(self, f"conv{i}")(F.pad(x, (before, after) * 3))
            x = F.max_pool3d(F.leaky_relu(x, 0.3), 2)
        x = x.flatten(1)
        for i in (1, 2):
            x = F.leaky_relu(getattr(self, f"fc{i}")(x), 0.3)
        return 1.2 * torch.tanh(self.fc3(x))


def main():
    args = values.arguments(__doc__)
    tensors = values.safetensors(args.file)
    shapes = {name.removeprefix("weight."): t.shape for name, t in tensors.items() if not name.startswith("gradient.")}
    side = (args.side or [128])[0]
    return values.run(
        CosmoFlow(shapes),
        tensors,
        lambda: torch.randn(args.batch, shapes["conv1.weight"][1], side, side, side),
        lambda: torch.randn(args.batch, shapes["fc3.weight"][0]),
        lambda out, target: F.mse_loss(out, target.to(out.dtype)),
        args,
    )


if __name__ == "__main__":
    sys.exit(main())
