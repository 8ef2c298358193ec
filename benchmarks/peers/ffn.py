#!/usr/bin/env python3
"""Whole training steps of a flood-filling network in PyTorch, with fields of view that move: crop each seed's field of view out of its canvas,
forward, loss, backward, clip by value, SGD, write the logits back, move on. Images are random; every move is taken, so that the work of a step
is always the same."""
import itertools
import math

import allocator
import serve


def network(torch, depth, features):
    from torch import nn

    class Ffn(nn.Module):
        """conv0_a, conv0_b, depth - 1 residual modules of two convolutions, and one of 1x1x1; parameters as Tutti's."""

        def __init__(self):
            super().__init__()
            self.depth = depth
            for i in range(depth):
                setattr(self, f"conv{i}_a", nn.Conv3d(features if i else 2, features, 3, padding=1))
                setattr(self, f"conv{i}_b", nn.Conv3d(features, features, 3, padding=1))
            self.conv_lom = nn.Conv3d(features, 1, 1)
            for name, parameter in self.named_parameters():
                nn.init.zeros_(parameter) if name.endswith("bias") else nn.init.xavier_uniform_(parameter)

        def forward(self, image, seed):
            x = self.conv0_b(torch.relu(self.conv0_a(torch.cat([image, seed], 1))))
            for i in range(1, self.depth):
                y = getattr(self, f"conv{i}_a")(torch.relu(x))
                x = x + getattr(self, f"conv{i}_b")(torch.relu(y))
            return self.conv_lom(torch.relu(x)) + seed

    return Ffn()


if __name__ == "__main__":
    parser = serve.arguments(__doc__)
    parser.add_argument("--depth", type=int, default=12)
    parser.add_argument("--features", type=int, default=32)
    parser.add_argument("--fov", type=int, default=33)
    parser.add_argument("--delta", type=int, default=8)
    parser.set_defaults(batch=4, warmup=1, steps=2)
    args = parser.parse_args()
    allocator.ensure(args.allocator)

    import torch
    from torch.nn import functional as F

    import training

    serve.use_threads(torch, args.threads)
    torch.manual_seed(1)
    model, layout = network(torch, args.depth, args.features), torch.channels_last_3d
    model.train()
    if args.layout == "channels_last":
        model = model.to(memory_format=layout)
    called = training.compiled(args, model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, **training.mode_of(args))
    wide = args.fov + 2 * args.delta
    moves = list(itertools.product((0, -args.delta, args.delta), repeat=3))
    image = torch.randn(args.batch, 1, wide, wide, wide)
    label = torch.where(torch.rand(image.shape) < 0.4, 0.95, 0.05)
    unknown = torch.full_like(image, math.log(0.05 / 0.95))
    canvas = unknown.clone()
    turn = 0

    def step():
        global turn
        move = moves[turn % len(moves)]
        if turn % len(moves) == 0:
            canvas.copy_(unknown)
            canvas[:, :, wide // 2, wide // 2, wide // 2] = math.log(0.95 / 0.05)
        turn += 1
        view = (slice(None), slice(None), *(slice(args.delta + m, args.delta + m + args.fov) for m in move))
        x, seed, target = (t[view].contiguous() for t in (image, canvas, label))
        optimizer.zero_grad(set_to_none=True)
        with training.autocast(args):
            out = called(x, seed)
        loss = F.binary_cross_entropy_with_logits(out.float(), target)
        loss.backward()
        torch.nn.utils.clip_grad_value_(model.parameters(), 0.7)
        optimizer.step()
        canvas[view] = out.detach().float()

    about = training.about(args, "ffn", sum(p.numel() for p in model.parameters()))
    serve.serve(args, step, about, args.batch)
