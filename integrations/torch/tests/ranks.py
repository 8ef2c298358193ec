"""Starts the ranks of a test: copies of its own program, which meet in a store served by rank 0.

    if __name__ == "__main__":
        ranks.run(main)        # --ranks N, --backends tutti,gloo: what main(dist, group sizes...) gets is below
"""
import argparse
import datetime
import os
import socket
import subprocess
import sys
import threading


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(ranks, arguments=()):
    """Starts this program `ranks` times. Returns the processes, in rank order."""
    port = str(free_port())
    all_ranks = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(ranks), "GLOO_SOCKET_IFNAME": "lo"}
    return [
        subprocess.Popen([sys.executable, sys.argv[0], *arguments], env={**all_ranks, "RANK": str(rank)}, stdin=subprocess.DEVNULL)
        for rank in range(ranks)
    ]


def run(main, seconds=300):
    """In the program that is started: runs it on --ranks ranks, and ends with 1 when one of them fails or hangs. In a rank: main()."""
    if "RANK" in os.environ:
        watchdog = threading.Timer(seconds, hang)
        watchdog.daemon = True
        watchdog.start()
        main()
        return
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    ranks = parser.parse_args().ranks
    codes = [process.wait() for process in start(ranks)]
    if any(codes):
        sys.exit(f"{os.path.basename(sys.argv[0])}: exit codes of the ranks: {codes}")


def hang():
    import faulthandler

    print(f"rank {os.environ['RANK']} hangs", file=sys.stderr)
    faulthandler.dump_traceback()
    os._exit(3)


def init(backend, seconds=60):
    """Makes the process group of all ranks. Returns torch.distributed."""
    import torch
    import torch.distributed as dist

    import tutti_torch  # noqa: F401  registers "tutti"

    torch.set_num_threads(1)
    dist.init_process_group(backend, timeout=datetime.timedelta(seconds=seconds))
    return dist
