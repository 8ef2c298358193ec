#!/usr/bin/env python3
"""The twin of examples/shakespeare_10m.toml in PyTorch: the same characters, first weights, windows in the same order, learning rates, decay groups,
clipping and evaluations; what dropout leaves out differs. Appends a line of JSON to --record after each epoch's evaluation, of the whole
validation text, and keeps its state beside it, from which it goes on. Seconds are of the wall clock, with evaluations, and of the processor."""
import argparse
import json
import math
import os
import time

import allocator
import serve


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", help="tiny Shakespeare, input.txt")
    parser.add_argument("--weights", metavar="FILE", help="first weights, safetensors of Tutti; without: random ones")
    parser.add_argument("--record", metavar="FILE", required=True, help="JSON lines; FILE.state is what a later call goes on from")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5000, help="of the schedule")
    parser.add_argument("--stop", type=int, default=0, help="end after so many steps; 0: after all of them")
    parser.add_argument("--seconds", type=float, default=0, help="end after the first evaluation behind so many seconds; 0: not")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--window", type=int, default=256)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--heads", type=int, default=6)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="bf16")
    parser.add_argument("--compile", choices=["off", "default"], default="off")
    parser.add_argument("--time-steps", type=int, default=0, metavar="N", help="only print the times of N steps")
    parser.add_argument("--allocator", choices=["tuned", "stock"], default="tuned")
    return parser.parse_args()


LR, LAST, WARMUP, DECAY = 1e-3, 0.1, 100, 0.1


def rate(step, steps):
    """Linear warm-up and cosine, as tutti/train/network/schedule.cpp."""
    if step < WARMUP:
        return LR * (step + 1) / (WARMUP + 1)
    progress = (min(step, steps - 1) - WARMUP) / (steps - WARMUP - 1)
    return LR * (LAST + (1 - LAST) / 2 * (1 + math.cos(math.pi * progress)))


def window_starts(seed, epoch, tokens, window):
    """Where the windows of an epoch begin, in Tutti's order: side by side from a place of the epoch's own."""
    from lattices import philox_words, tutti_order

    count = max(1, (tokens - window) // window)
    words = philox_words(seed, 14, epoch, 0)
    begin = (words[0] << 32 | words[1]) * min(window, tokens - window - (count - 1) * window) >> 64
    return [begin + place * window for place in tutti_order(seed, epoch, count)]


def load(model, path):
    import torch

    import values

    tensors = values.safetensors(path)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            array = torch.from_numpy(tensors[name])
            layer = name.split(".")[-2].startswith("c_") and array.ndim == 2  # files hold [inputs, outputs]
            parameter.copy_(array.T if layer else array)


def main(args):
    import torch
    from torch.nn import functional as F

    from gpt2 import Gpt2

    serve.use_threads(torch, args.threads)
    torch.manual_seed(args.seed)
    text = open(args.text, encoding="utf-8").read()
    cut = int(len(text) * 0.9)
    code = {character: i for i, character in enumerate(sorted(set(text[:cut])))}
    data = torch.tensor([code[c] for c in text])
    train, validation = data[:cut], data[cut:]
    model = Gpt2(len(code), args.window, args.depth, args.width, args.heads, args.dropout)
    model.initialise()
    if args.weights:
        load(model, args.weights)
    matrices = [p for name, p in model.named_parameters() if not name.endswith("bias") and ".ln_" not in f".{name}"]
    others = [p for name, p in model.named_parameters() if name.endswith("bias") or ".ln_" in f".{name}"]
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=LR, betas=(0.9, 0.99), fused=True)

    def loss_of(tokens, target):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.precision == "bf16"):
            logits = model.logits(tokens)
        return F.cross_entropy(logits.float().flatten(0, 1), target.flatten())

    called = loss_of if args.compile == "off" else torch.compile(loss_of)

    def evaluate():
        """Mean over all characters but the first, in windows side by side."""
        model.eval()
        total, count, whole = 0.0, len(validation) - 1, (len(validation) - 1) // args.window
        with torch.no_grad():
            for first in range(0, whole, args.batch):
                begin, end = first * args.window, min(whole, first + args.batch) * args.window
                tokens, target = validation[begin:end].view(-1, args.window), validation[begin + 1 : end + 1].view(-1, args.window)
                total += loss_of(tokens, target).item() * target.numel()
            rest = slice(whole * args.window, count)
            if rest.start < count:
                target = validation[rest.start + 1 :][None]
                total += loss_of(validation[rest][None], target).item() * target.numel()
        model.train()
        return total / count

    starts, step, epoch_of_starts, spent = [], 0, -1, [0.0, 0.0]
    state_file = args.record + ".state"
    if os.path.exists(state_file):
        state = torch.load(state_file)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        step, spent = state["step"], state["spent"]
    begin = [time.time() - spent[0], time.process_time() - spent[1]]
    per_epoch = (len(train) - args.window) // args.window // args.batch
    places = torch.arange(args.window)

    def train_step():
        nonlocal starts, step, epoch_of_starts
        epoch, at = divmod(step, per_epoch)
        if epoch != epoch_of_starts:
            starts, epoch_of_starts = window_starts(args.seed, epoch, len(train), args.window), epoch
        where = torch.tensor(starts[at * args.batch : (at + 1) * args.batch])[:, None] + places
        for group in optimizer.param_groups:
            group["lr"] = rate(step, args.steps)
        optimizer.zero_grad(set_to_none=True)
        loss = called(train[where], train[where + 1])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        return loss

    def record(train_loss):
        loss = evaluate()
        now = [time.time() - begin[0], time.process_time() - begin[1]]
        line = {"step": step, "seconds": now[0], "processor_s": now[1], "loss": loss, "train_loss": train_loss}
        print(json.dumps(line), flush=True)
        with open(args.record, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "random": torch.get_rng_state(), "step": step, "spent": now}
        torch.save(state, state_file + ".new")
        os.replace(state_file + ".new", state_file)
        return now[0]

    for _ in range(args.time_steps):
        start = time.process_time()
        train_step().item()
        print(f"{time.process_time() - start:.3f} s of the processor", flush=True)
    if args.time_steps:
        return
    if step == 0:
        record(None)
    last = args.stop or args.steps
    losses = []
    while step < last:
        losses.append(train_step().detach())
        if step % per_epoch == 0 or step == last:
            seconds = record(float(torch.stack(losses).mean()))
            losses = []
            if args.seconds and seconds > args.seconds:
                return


if __name__ == "__main__":
    arguments_ = arguments()
    allocator.ensure(arguments_.allocator)
    main(arguments_)
