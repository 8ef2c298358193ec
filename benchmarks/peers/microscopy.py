#!/usr/bin/env python3
"""FC-DenseNet (small) and VGG-11 with batch norm (small), as the test program tutti_network_values computes them, in PyTorch: `fc-densenet` of two,
one and two layers, or `vgg` of four numbers. The network is told from the names in the file. Biases before batch norms have no gradient but rounding."""
import sys

import torch
from torch import nn
from torch.nn import functional as F

import values


class Layer(nn.Sequential):
    """Batch norm, ReLU, convolution."""

    def __init__(self, inputs, outputs, kernel):
        super().__init__()
        self.add_module("norm", nn.BatchNorm2d(inputs))
        self.add_module("relu", nn.ReLU())
        self.add_module("conv", nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2))


class Block(nn.Module):
    def __init__(self, inputs, growth, layers):
        super().__init__()
        self.layers = nn.ModuleList(Layer(inputs + i * growth, growth, 3) for i in range(layers))

    def forward(self, x):
        added = []
        for layer in self.layers:
            added.append(layer(x))
            x = torch.cat([x, added[-1]], 1)
        return x, torch.cat(added, 1)


class Bottleneck(nn.Module):
    def __init__(self, *args):
        super().__init__()
        self.bottleneck = Block(*args)


class Up(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.convTrans = nn.ConvTranspose2d(channels, channels, 3, 2)

    def forward(self, x, skipped):
        return torch.cat([self.convTrans(x)[..., : skipped.shape[2], : skipped.shape[3]], skipped], 1)


class FcDenseNet(nn.Module):
    def __init__(self, layers, bottleneck, growth, first, outputs):
        super().__init__()
        self.firstconv = nn.Conv2d(1, first, 3, padding=1)
        self.denseBlocksDown, self.transDownBlocks = nn.ModuleList(), nn.ModuleList()
        self.transUpBlocks, self.denseBlocksUp = nn.ModuleList(), nn.ModuleList()
        channels, skipped = first, []
        for count in layers:
            self.denseBlocksDown.append(Block(channels, growth, count))
            channels += count * growth
            skipped.append(channels)
            self.transDownBlocks.append(Layer(channels, channels, 1))
        self.bottleneck = Bottleneck(channels, growth, bottleneck)
        before = bottleneck * growth
        for count, skip in zip(reversed(layers), reversed(skipped)):
            self.transUpBlocks.append(Up(before))
            self.denseBlocksUp.append(Block(before + skip, growth, count))
            before, channels = count * growth, before + skip + count * growth
        self.finalConv = nn.Conv2d(channels, outputs, 1)

    def forward(self, x):
        x, skipped = self.firstconv(x), []
        for block, down in zip(self.denseBlocksDown, self.transDownBlocks):
            x, _ = block(x)
            skipped.append(x)
            x = F.max_pool2d(down(x), 2)
        x, added = self.bottleneck.bottleneck(x)
        for up, block in zip(self.transUpBlocks, self.denseBlocksUp):
            x, added = block(up(added, skipped.pop()))
        return self.finalConv(x)


class Vgg11(nn.Module):
    def __init__(self, width, side, hidden, outputs):
        super().__init__()
        layers, channels = [], 1
        for stage, count in enumerate((1, 1, 2, 2, 2)):
            for _ in range(count):
                wide = width * 2 ** min(stage, 3)
                layers += [nn.Conv2d(channels, wide, 3, padding=1), nn.BatchNorm2d(wide), nn.ReLU()]
                channels = wide
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        sizes = [channels * (side // 32) ** 2, *hidden]
        layers = []
        for inputs, size in zip(sizes, hidden):
            layers += [nn.Linear(inputs, size), nn.ReLU(), nn.Dropout(0)]
        self.classifier = nn.Sequential(*layers, nn.Linear(sizes[-1], outputs))

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def main():
    args = values.arguments(__doc__)
    tensors = values.safetensors(args.file)
    vgg = "weight.features.0.weight" in tensors
    model = Vgg11(8, 64, (16, 16), 4) if vgg else FcDenseNet([2, 1, 2], 2, 6, 8, 1)
    return values.run(model, tensors, lambda: None, lambda: None, lambda out, target: F.huber_loss(out, target.to(out.dtype)), args, floor=1e-3)


if __name__ == "__main__":
    sys.exit(main())
