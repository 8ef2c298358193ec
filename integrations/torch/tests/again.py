"""A process group that is destroyed and made again, with the store that it had: as under torchrun, whose store outlives it."""
import datetime
import os

import ranks
import torch
import torch.distributed as dist

import tutti_torch  # noqa: F401  registers "tutti"


def main():
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    limit = datetime.timedelta(seconds=30)
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), size, rank == 0, limit)
    for turn in range(4):
        dist.init_process_group("tutti", store=store, rank=rank, world_size=size, timeout=limit)
        x = torch.full((1000,), float(turn))
        dist.all_reduce(x)
        assert torch.all(x == turn * size), x
        dist.destroy_process_group()
    store.add("ended", 1)
    while rank == 0 and store.add("ended", 0) < size:  # it serves the store
        pass
    print(f"again: rank {rank}: 4 groups", flush=True)


if __name__ == "__main__":
    ranks.run(main, 100)
