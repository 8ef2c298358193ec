"""The machine line that stands beside every figure."""
import os
import pathlib
import platform
import subprocess


def _first(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0].strip()
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def _cpu_model():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown CPU"


def _caches():
    found = {}
    for index in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = ((index / name).read_text(encoding="utf-8").strip() for name in ("level", "type", "size"))
        if kind != "Instruction":
            found[f"L{level}"] = size
    return " ".join(f"{level} {size}" for level, size in found.items())


def line(tutti):
    """One line: CPU, cores, caches, memory, kernel, load before the measurement, and what was measured."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{_cpu_model()}, {len(os.sched_getaffinity(0))} cores, {_caches()}, {memory:.0f} GiB, "
        f"Linux {platform.release()}, load {os.getloadavg()[0]:.1f}; {_first([tutti, '--version'])}"
    )
