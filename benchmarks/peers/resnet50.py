#!/usr/bin/env python3
"""Whole training steps of ResNet-50 at 224 x 224 (He et al. 2016, with the stride in the 3 x 3 convolution) in one process. With --tilt the
regression of atom microscopy: one channel, four numbers, Huber loss."""
import allocator
import serve

PARAMETERS = {False: 25557032, True: 23509956}  # with --tilt

if __name__ == "__main__":
    parser = serve.arguments(__doc__)
    parser.add_argument("--tilt", action="store_true", help="N x 1 x side x side to four numbers")
    parser.add_argument("--side", type=int, default=224)
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
        """Input N x C x side x side, output N x outputs."""

        def __init__(self, channels, outputs):
            super().__init__()
            self.conv = nn.Conv2d(channels, 64, 7, 2, 3, bias=False)
            self.bn = nn.BatchNorm2d(64)
            blocks = []
            inputs = 64
            for width, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
                for i in range(count):
                    blocks.append(Bottleneck(inputs, width, 2 if i == 0 and width != 64 else 1))
                    inputs = 4 * width
            self.blocks = nn.Sequential(*blocks)
            self.fc = nn.Linear(2048, outputs)
            trainable = sum(p.numel() for p in self.parameters())
            assert trainable == PARAMETERS[args.tilt], f"ResNet-50 has {trainable} parameters instead of {PARAMETERS[args.tilt]}"

        def forward(self, x):
            y = F.max_pool2d(F.relu(self.bn(self.conv(x)), inplace=True), 3, 2, 1)
            return self.fc(self.blocks(y).mean((2, 3)))

    serve.use_threads(torch, args.threads)
    channels, outputs = (1, 4) if args.tilt else (3, 1000)
    model = training.prepare(args, ResNet50(channels, outputs))
    batches = training.random_batches(args, (channels, args.side, args.side), outputs)
    loss = nn.CrossEntropyLoss()
    if args.tilt:
        batches = [(x, torch.randn(args.batch, outputs)) for x, _ in batches]
        loss = lambda out, target: F.huber_loss(out.float(), target)  # noqa: E731
    step = training.make_step(args, model, batches, loss)
    serve.serve(args, step, training.about(args, "resnet50", PARAMETERS[args.tilt]), args.batch)
