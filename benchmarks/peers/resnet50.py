#!/usr/bin/env python3
"""Whole training steps of ResNet-50 at 224 x 224 (He et al. 2016, with the stride in the 3 x 3 convolution) in one process."""
import allocator
import serve

PARAMETERS = 25557032

if __name__ == "__main__":
    parser = serve.arguments(__doc__)
    parser.set_defaults(batch=16, warmup=2, steps=5)
    args = parser.parse_args()
    allocator.ensure(args.allocator)

    import torch
    from torch import nn
    from torch.nn import functional as F

    import training

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
            self.shortcut = nn.Identity()
            if stride != 1 or inputs != outputs:
                self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

        def forward(self, x):
            y = F.relu(self.bn1(self.conv1(x)), inplace=True)
            y = F.relu(self.bn2(self.conv2(y)), inplace=True)
            return F.relu(self.bn3(self.conv3(y)) + self.shortcut(x), inplace=True)

    class ResNet50(nn.Module):
        """Input N x 3 x 224 x 224, output N x 1000."""

        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
            self.bn = nn.BatchNorm2d(64)
            blocks = []
            inputs = 64
            for width, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
                for i in range(count):
                    blocks.append(Bottleneck(inputs, width, 2 if i == 0 and width != 64 else 1))
                    inputs = 4 * width
            self.blocks = nn.Sequential(*blocks)
            self.fc = nn.Linear(2048, 1000)
            trainable = sum(p.numel() for p in self.parameters())
            assert trainable == PARAMETERS, f"ResNet-50 has {trainable} parameters instead of {PARAMETERS}"

        def forward(self, x):
            y = F.max_pool2d(F.relu(self.bn(self.conv(x)), inplace=True), 3, 2, 1)
            return self.fc(self.blocks(y).mean((2, 3)))

    torch.set_num_threads(args.threads)
    model = training.prepare(args, ResNet50())
    step = training.make_step(args, model, training.random_batches(args, (3, 224, 224), 1000))
    serve.serve(args, step, training.about(args, "resnet50", PARAMETERS), args.batch)
