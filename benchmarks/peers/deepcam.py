#!/usr/bin/env python3
"""DeepCAM of MLPerf HPC in PyTorch, under the parameter names of its reference, with weights of Tutti: one pass forward and backward."""
import sys

import torch
from torch import nn
from torch.nn import functional as F

import values

FREQUENCIES = (0.986267818390377, 0.0004578708870701058, 0.01327431072255291)


class Norm(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bn = nn.BatchNorm2d(channels)

    def forward(self, x):
        return self.bn(x)


class Separable(nn.Module):
    def __init__(self, inputs, outputs, stride=1, dilation=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, inputs, 3, stride, dilation, dilation, groups=inputs, bias=False)
        self.pointwise = nn.Conv2d(inputs, outputs, 1, bias=False)

    def forward(self, x):
        return self.pointwise(self.conv1(x))


class Block(nn.Module):
    """`widths` are the outputs of the separable convolutions with batch norm; `end` is the stride of one more without."""

    def __init__(self, inputs, widths, end=None):
        super().__init__()
        layers, channels = [], inputs
        for width in widths:
            layers += [Separable(channels, width), Norm(width), nn.ReLU()]
            channels = width
        layers.pop()
        if end:
            layers.append(Separable(channels, channels, end))
            self.skip = nn.Conv2d(inputs, channels, 1, end, bias=False)
            self.skipbn = Norm(channels)
        self.rep = nn.Sequential(*layers)

    def forward(self, x):
        return self.rep(x) + (self.skipbn(self.skip(x)) if hasattr(self, "skip") else x)


class Encoder(nn.Module):
    def __init__(self, inputs, width, middle):
        super().__init__()
        self.middle = middle
        w = width
        self.conv1, self.bn1 = nn.Conv2d(inputs, w(32), 3, 2, 1, bias=False), Norm(w(32))
        self.conv2, self.bn2 = nn.Conv2d(w(32), w(64), 3, 1, 1, bias=False), Norm(w(64))
        self.block1 = Block(w(64), [w(128)] * 2, 2)
        self.block2 = Block(w(128), [w(256)] * 2, 2)
        self.block3 = Block(w(256), [w(728)] * 2, 2)
        for i in range(middle):
            setattr(self, f"block{4 + i}", Block(w(728), [w(728)] * 3))
        self.block20 = Block(w(728), [w(728), w(1024)], 1)
        self.conv3, self.bn3 = Separable(w(1024), w(1536), 1, 2), Norm(w(1536))
        self.conv4, self.bn4 = Separable(w(1536), w(1536), 1, 2), Norm(w(1536))
        self.conv5, self.bn5 = Separable(w(1536), w(2048), 1, 2), Norm(w(2048))

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        low = x = F.relu(self.block1(x))
        for i in range(2, 4 + self.middle):
            x = F.relu(getattr(self, f"block{i}")(x))
        x = self.block20(x)
        for i in (3, 4, 5):
            x = F.relu(getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(x)))
        return x, low


class Atrous(nn.Module):
    def __init__(self, inputs, outputs, rate):
        super().__init__()
        kernel, padding = (1, 0) if rate == 1 else (3, rate)
        self.atrous_convolution = nn.Conv2d(inputs, outputs, kernel, 1, padding, rate, bias=False)
        self.bn = Norm(outputs)

    def forward(self, x):
        return F.relu(self.bn(self.atrous_convolution(x)))


class Affine(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weights = nn.Parameter(torch.ones(channels, 1, 1))
        self.bias = nn.Parameter(torch.zeros(channels, 1, 1))

    def forward(self, x):
        return self.weights * x + self.bias


class ImagePooling(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        conv = nn.Conv2d(inputs, outputs, 1, bias=False)
        self.global_average_pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), conv, Affine(outputs), nn.ReLU())

    def forward(self, x):
        return self.global_average_pool(x).expand(-1, -1, *x.shape[2:])


class Bottleneck(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        for i, rate in enumerate((1, 6, 12, 18), 1):
            setattr(self, f"aspp{i}", Atrous(inputs, outputs, rate))
        self.global_avg_pool = ImagePooling(inputs, outputs)
        self.conv, self.bn = nn.Conv2d(5 * outputs, outputs, 1, bias=False), Norm(outputs)

    def forward(self, x):
        branches = [getattr(self, f"aspp{i}")(x) for i in (1, 2, 3, 4)] + [self.global_avg_pool(x)]
        return F.relu(self.bn(self.conv(torch.cat(branches, 1))))


def doubled(inputs, outputs):
    return nn.ConvTranspose2d(inputs, outputs, 3, 2, 1, 1, bias=False)


class Decoder(nn.Module):
    def __init__(self, width, low, classes):
        super().__init__()

        def conv(inputs):
            return [nn.Conv2d(inputs, width, 3, 1, 1, bias=False), Norm(width), nn.ReLU()]

        def deconv():
            return [doubled(width, width), Norm(width), nn.ReLU()]

        self.deconv1 = nn.Sequential(*deconv(), *deconv())
        self.conv1 = nn.Sequential(*conv(width + low), *conv(width), nn.Conv2d(width, width, 1))
        self.deconv2 = nn.Sequential(*deconv())
        self.last_deconv = nn.Sequential(doubled(width, classes))

    def forward(self, x, low):
        return self.last_deconv(self.deconv2(self.conv1(torch.cat((self.deconv1(x), low), 1))))


class DeepCam(nn.Module):
    def __init__(self, inputs, classes, divisor, middle):
        super().__init__()

        def width(full):
            return -(-full // divisor)

        self.xception_features = Encoder(inputs, width, middle)
        self.bottleneck = Bottleneck(width(2048), width(256))
        self.conv2, self.bn2 = nn.Conv2d(width(128), width(48), 1, bias=False), Norm(width(48))
        self.upsample = Decoder(width(256), width(48), classes)

    def forward(self, x):
        x, low = self.xception_features(x)
        return self.upsample(self.bottleneck(x), F.relu(self.bn2(self.conv2(low))))


def loss_of(logits, labels):
    """The mean over pixels of weight times cross entropy, not divided by the sum of the weights."""
    weights = torch.tensor([f ** -0.125 for f in FREQUENCIES], dtype=logits.dtype)
    return F.cross_entropy(logits, labels.long(), weight=weights, reduction="none").mean()


def main():
    args = values.arguments(__doc__)
    tensors = values.safetensors(args.file)
    shapes = {name.removeprefix("weight."): t.shape for name, t in tensors.items() if not name.startswith("gradient.")}
    encoder = "xception_features."
    last, middle_width = shapes[encoder + "conv5.pointwise.weight"][0], shapes[encoder + "block3.skip.weight"][0]
    divisor = next(d for d in range(1, 33) if (-(-2048 // d), -(-728 // d)) == (last, middle_width))
    middle = sum(f"{encoder}block{i}.rep.0.conv1.weight" in shapes for i in range(4, 20))
    inputs, classes = shapes[encoder + "conv1.weight"][1], shapes["upsample.last_deconv.0.weight"][1]
    side = args.side or [768, 1152]
    return values.run(
        DeepCam(inputs, classes, divisor, middle),
        tensors,
        lambda: torch.randn(args.batch, inputs, *side),
        lambda: torch.randint(classes, (args.batch, *side)),
        loss_of,
        args,
    )


if __name__ == "__main__":
    sys.exit(main())
