"""Tutti's collectives under torch.distributed: importing this registers the back end "tutti" for tensors in main memory.

    import tutti_torch
    torch.distributed.init_process_group("tutti")

TUTTI_TORCH_PROGRESS_THREADS: a thread of each process that moves collectives on while the program computes (1; 0: none, so they move while
the program waits for them). TUTTI_TORCH_ADDRESS: name or address of this host that the other ranks connect to.
"""
import atexit as _atexit

import torch.distributed as _distributed  # before _backend: loads PyTorch's libraries

from . import _backend

_atexit.register(_backend.stop)  # before Python ends, which its thread may call back into
_distributed.Backend.register_backend("tutti", _backend.create, devices=["cpu"])
