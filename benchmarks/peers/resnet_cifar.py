#!/usr/bin/env python3
"""Whole training steps of a CIFAR-10 ResNet in one process."""
import allocator
import serve

if __name__ == "__main__":
    parser = serve.arguments(__doc__)
    parser.add_argument("--model", choices=["resnet20", "resnet32", "resnet44", "resnet56"], default="resnet44")
    args = parser.parse_args()
    allocator.ensure(args.allocator)

    import torch

    import training
    from resnet_cifar_model import PARAMETERS, ResNetCifar

    serve.use_threads(torch, args.threads)
    model = training.prepare(args, ResNetCifar(args.model))
    step = training.make_step(args, model, training.random_batches(args, (3, 32, 32), 10))
    serve.serve(args, step, training.about(args, args.model, PARAMETERS[args.model]), args.batch)
