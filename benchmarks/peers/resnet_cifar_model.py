"""The 6n+2 residual networks for CIFAR-10 (He et al. 2016, section 4.2) with option-A shortcuts: subsample, pad with zero channels."""
from torch import nn
from torch.nn import functional as F

DEPTHS = {"resnet20": 3, "resnet32": 5, "resnet44": 7, "resnet56": 9}
PARAMETERS = {"resnet20": 269722, "resnet32": 464154, "resnet44": 658586, "resnet56": 853018}


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.stride = stride
        self.extra = outputs - inputs

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        if self.stride != 1 or self.extra:
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.extra // 2, self.extra - self.extra // 2))
        return F.relu(y + x, inplace=True)


class ResNetCifar(nn.Module):
    """Input N x 3 x 32 x 32, output N x 10."""

    def __init__(self, name):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn = nn.BatchNorm2d(16)
        blocks = []
        inputs = 16
        for outputs in (16, 32, 64):
            for i in range(DEPTHS[name]):
                blocks.append(Block(inputs, outputs, 2 if i == 0 and outputs != 16 else 1))
                inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(64, 10)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        trainable = sum(p.numel() for p in self.parameters())
        assert trainable == PARAMETERS[name], f"{name} has {trainable} parameters instead of {PARAMETERS[name]}"

    def forward(self, x):
        y = self.blocks(F.relu(self.bn(self.conv(x)), inplace=True))
        return self.fc(y.mean((2, 3)))
