"""The allocator setting that PyTorch needs on CPU.

Without it glibc gives every large activation back to the kernel and faults it in again each step, which makes PyTorch up to eight
times slower; a claim against that would be worth nothing. The variables are read when a process starts, hence the re-execution.
"""
import os
import sys

TUNED = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "100000000000",
    "MALLOC_TOP_PAD_": "268435456",
}


def ensure(kind):
    """Restarts this program under the tuned allocator, or under the stock one, unless it already runs so. Call first."""
    wanted = {**os.environ, **TUNED}
    if kind == "stock":
        wanted = {name: value for name, value in os.environ.items() if name not in TUNED}
    if wanted != dict(os.environ):
        os.execve(sys.executable, [sys.executable, *sys.argv], wanted)
