"""A rank that is killed gives an exception on the others soon, in a wait as in a future, and no hang."""
import os
import signal
import sys
import time

import ranks
import torch


def fails(what, call, seconds):
    import torch.distributed as dist

    begin = time.monotonic()
    try:
        call()
    except (dist.DistBackendError, RuntimeError) as error:
        took = time.monotonic() - begin
        assert took < seconds, f"{what}: {took} s"
        assert "tutti" in str(error), error
        print(f"killed: rank {dist.get_rank()}: {what}: {took:.1f} s: {str(error).splitlines()[0][:160]}")
        return
    sys.exit(f"{what}: no exception")


def main():
    dist = ranks.init("tutti", 120)
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    helper = dist.new_group()
    x = torch.ones(1000)
    for _ in range(10):  # until there are plans enough: making one waits for all ranks
        for group in (None, helper):
            dist.all_reduce(x, group=group)
    if rank == last:
        os.kill(os.getpid(), signal.SIGKILL)
    fails("future", lambda: dist.all_reduce(x, group=helper, async_op=True).get_future().wait(), 20)
    fails("wait", lambda: dist.all_reduce(x), 20)
    fails("next call", lambda: dist.all_reduce(x), 20)
    dist.destroy_process_group()


if __name__ == "__main__":
    if "RANK" in os.environ:
        ranks.run(main, 100)
    else:
        started = ranks.start(int(sys.argv[2]) if len(sys.argv) > 2 else 2)
        codes = [process.wait() for process in started]
        if codes[:-1] != [0] * (len(codes) - 1) or codes[-1] != -signal.SIGKILL:
            sys.exit(f"killed.py: exit codes of the ranks: {codes}")
