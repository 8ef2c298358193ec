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
    from resnet import ResNet50

    serve.use_threads(torch, args.threads)
    channels, outputs = (1, 4) if args.tilt else (3, 1000)
    model = ResNet50(channels, outputs)
    trainable = sum(p.numel() for p in model.parameters())
    assert trainable == PARAMETERS[args.tilt], f"ResNet-50 has {trainable} parameters instead of {PARAMETERS[args.tilt]}"
    model = training.prepare(args, model)
    batches = training.random_batches(args, (channels, args.side, args.side), outputs)
    loss = nn.CrossEntropyLoss()
    if args.tilt:
        batches = [(x, torch.randn(args.batch, outputs)) for x, _ in batches]
        loss = lambda out, target: F.huber_loss(out.float(), target)  # noqa: E731
    step = training.make_step(args, model, batches, loss)
    serve.serve(args, step, training.about(args, "resnet50", PARAMETERS[args.tilt]), args.batch)
