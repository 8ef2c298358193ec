"""The protocol between benchmarks/compare and whoever trains: one JSON object a line on stdout, commands on stdin.

    (start)  -> {"ready": true, ...what this program is...}
    run K    -> {"step_ms": [K numbers], "images_per_s": ..., "peak_rss_bytes": ...}
    quit     -> (end)

Without --serve a program makes one run of --steps steps and prints the same line.
"""
import pathlib
import sys
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent))
import one_line  # what is said of inputs
import argparse
import json
import resource
import time


def arguments(description):
    """The flags that all peers share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--batch", type=int, default=128, help="samples per step and process")
    parser.add_argument("--threads", type=int, default=2, help="threads per process")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--layout", choices=["contiguous", "channels_last"], default="channels_last")
    parser.add_argument("--compile", choices=["off", "default", "max-autotune"], default="off", help="torch.compile")
    parser.add_argument("--optimizer", choices=["loop", "foreach", "fused"], default="foreach", help="how SGD updates")
    parser.add_argument("--allocator", choices=["tuned", "stock"], default="tuned")
    parser.add_argument("--warmup", type=int, default=3, help="steps before the program is ready")
    parser.add_argument("--steps", type=int, default=20, help="steps of the one run without --serve")
    parser.add_argument("--serve", action="store_true", help="take commands from stdin")
    parser.add_argument("--json", metavar="FILE", help="write the result there too")
    return parser


def use_threads(torch, threads):
    """For PyTorch, before its first operation: it computes with so many threads, and takes denormals for zero as Tutti does."""
    torch.set_flush_denormal(True)  # threads take it over from the one that starts them
    torch.set_num_threads(threads)


def peak_rss_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def timed_run(step, steps, images):
    """Times whole steps one by one; `images` is what one step trains on, over all processes."""
    step_ms = []
    begin = time.perf_counter()
    for _ in range(steps):
        start = time.perf_counter()
        step()
        step_ms.append((time.perf_counter() - start) * 1e3)
    elapsed = time.perf_counter() - begin
    return {"step_ms": step_ms, "images_per_s": images * steps / elapsed, "peak_rss_bytes": peak_rss_bytes()}


def say(message, file=None):
    text = json.dumps(message)
    print(text, flush=True)
    if file:
        with open(file, "w", encoding="utf-8") as out:
            out.write(text + "\n")


def commands():
    """The K of each `run K` on stdin, until `quit` or the end of the input."""
    for line in sys.stdin:
        words = line.split()
        if words == ["quit"]:
            return
        if len(words) != 2 or words[0] != "run":
            raise SystemExit(f"expected `run K` or `quit`, got: {line.strip()}")
        yield int(words[1])


def serve(args, step, about, images):
    """Warms up, then answers commands (--serve) or makes one run."""
    for _ in range(args.warmup):
        step()
    if not args.serve:
        say({**about, **timed_run(step, args.steps, images)}, args.json)
        return
    say({"ready": True, **about})
    for steps in commands():
        say(timed_run(step, steps, images))
