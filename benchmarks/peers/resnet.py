#!/usr/bin/env python3
"""ResNet-50 (He et al. 2016, with the stride in the 3 x 3 convolution) in PyTorch, under the parameter names of torchvision, or the ResNet-44 of
CIFAR-10, with weights of Tutti: one pass forward and backward."""
import sys

import torch
from torch import nn
from torch.nn import functional as F

import resnet_cifar_model
import values

STAGES = (3, 4, 6, 3)


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.downsample = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = F.relu(self.bn2(self.conv2(y)), inplace=True)
        return F.relu(self.bn3(self.conv3(y)) + self.downsample(x), inplace=True)


class ResNet50(nn.Module):
    """Input N x C x side x side, output N x outputs. The four stages have `width` channels, and each twice as many as the one before."""

    def __init__(self, channels, outputs, width=64):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        inputs = width
        for stage, count in enumerate(STAGES):
            blocks = []
            for i in range(count):
                blocks.append(Bottleneck(inputs, width << stage, 2 if i == 0 and stage > 0 else 1))
                inputs = 4 * width << stage
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(inputs, outputs)

    def forward(self, x):
        y = F.max_pool2d(F.relu(self.bn1(self.conv1(x)), inplace=True), 3, 2, 1)
        for stage in range(len(STAGES)):
            y = getattr(self, f"layer{stage + 1}")(y)
        return self.fc(y.mean((2, 3)))


class ResNet44(resnet_cifar_model.ResNetCifar):
    """Parameters under Tutti's names: layerS.I where the model counts blocks through."""

    def __init__(self):
        super().__init__("resnet44")

    def named_parameters(self, *args, **kwargs):
        depth = resnet_cifar_model.DEPTHS["resnet44"]
        for name, parameter in super().named_parameters(*args, **kwargs):
            module, *rest = name.split(".")
            if module == "blocks":
                module = f"layer{int(rest[0]) // depth + 1}.{int(rest[0]) % depth}"
                rest = rest[1:]
            yield ".".join([{"conv": "conv1", "bn": "bn1", "fc": "linear"}.get(module, module), *rest]), parameter


def main():
    args = values.arguments(__doc__)
    tensors = values.safetensors(args.file)
    shapes = {name.removeprefix("weight."): t.shape for name, t in tensors.items() if not name.startswith("gradient.")}
    width, channels = shapes["conv1.weight"][:2]
    deep = "fc.weight" in shapes
    classes, side = shapes["fc.weight" if deep else "linear.weight"][0], (args.side or [224 if deep else 32])[0]
    return values.run(
        ResNet50(channels, classes, width) if deep else ResNet44(),
        tensors,
        lambda: torch.randn(args.batch, channels, side, side),
        lambda: torch.randint(classes, (args.batch,)),
        lambda out, target: F.cross_entropy(out, target.long()),
        args,
    )


if __name__ == "__main__":
    sys.exit(main())
