"""One whole training step in PyTorch, as a tuned user would write it: zero_grad, forward, loss, backward, SGD."""
import itertools

import torch

NUM_BATCHES = 8  # rotated, so that no step finds its input in a cache by luck


def random_batches(args, shape, classes, seed=1, count=NUM_BATCHES):
    """Normalised images and labels, in memory before the clock starts."""
    torch.manual_seed(seed)
    layout = torch.channels_last if args.layout == "channels_last" else torch.contiguous_format
    return [
        (torch.randn(args.batch, *shape).contiguous(memory_format=layout), torch.randint(0, classes, (args.batch,)))
        for _ in range(count)
    ]


def prepare(args, model):
    """Applies layout and torch.compile. Returns the model to call."""
    model.train()
    if args.layout == "channels_last":
        model = model.to(memory_format=torch.channels_last)
    return compiled(args, model)


def compiled(args, model):
    return model if args.compile == "off" else torch.compile(model, mode=args.compile)


def autocast(args):
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.precision == "bf16")


def mode_of(args):
    return {"loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}[args.optimizer]


def sgd(args, model):
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True, weight_decay=5e-4, **mode_of(args))


def adamw(args, model):
    return torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1, **mode_of(args))


def make_step(args, model, batches, loss_of=torch.nn.CrossEntropyLoss(), optimizer_of=sgd):
    """A function without arguments that trains on the next batch."""
    def loss_of_batch(x, y):
        with autocast(args):
            return loss_of(model(x), y)

    return step_over(batches, optimizer_of(args, model), loss_of_batch)


def step_over(batches, optimizer, loss_of):
    """A function without arguments that trains on the next batch, whose loss is loss_of(*batch)."""
    turns = itertools.cycle(batches)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(*next(turns))
        loss.backward()
        optimizer.step()
        return loss

    return step


def about(args, name, parameters):
    return {
        "peer": f"PyTorch {torch.__version__.split('+')[0]}",
        "model": name,
        "parameters": parameters,
        "precision": args.precision,
        "batch": args.batch,
        "threads": args.threads,
        "layout": args.layout,
        "compile": args.compile,
        "optimizer": args.optimizer,
        "allocator": args.allocator,
    }
