"""Every source compiles alone: each_alone.py SOURCES FOLDER CMAKE CMAKE-ARGUMENT...

A release build compiles several sources as one, after a precompiled header; what one of them forgets to include, another one has included.
Here the compiler reads each source by itself, and each header that no source includes first. It makes no code of it. FOLDER is for CMake."""

import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

root, folder, cmake = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]


def options_by_source():
    settings = ["CMAKE_EXPORT_COMPILE_COMMANDS=ON", "CMAKE_UNITY_BUILD=OFF", "CMAKE_DISABLE_PRECOMPILE_HEADERS=ON", "CMAKE_BUILD_TYPE=Debug",
                "TUTTI_BUILD_TESTS=ON"]
    subprocess.run([cmake, "-S", root, "-B", folder, *("-D" + setting for setting in settings), *sys.argv[4:]], check=True, stdout=subprocess.DEVNULL)
    for target in ("tutti_cuda_interface", "tutti_git_hash", "tutti_workload_interface"):  # headers that the build writes
        subprocess.run([cmake, "--build", folder, "--target", target], check=True, stdout=subprocess.DEVNULL)
    options = {}
    for entry in json.loads((folder / "compile_commands.json").read_text()):
        source = Path(entry["file"])
        if root in source.parents and folder not in source.parents:
            words = shlex.split(entry["command"])
            options[source] = words[: words.index("-o")] + ["-fsyntax-only", "-w", "-Wfatal-errors"]
    return options


def includes(source):
    """Every include, in order: the header, or None where it is none of the tree's."""
    for name in re.findall('^#include ["<](.*)[">]', source.read_text(), re.M):
        yield next((header for header in (root / name, source.parent / name) if header.is_file()), None)


def headers_not_first(options):
    """Each with the options of a source that includes it, or else of one of its folder."""
    headers = {header: words for source, words in options.items() for header in source.parent.glob("*.h")}
    headers.update({header: words for source, words in options.items() for header in includes(source)})
    for source in options:
        headers.pop(next(includes(source), None), None)
    headers.pop(None, None)
    return {header: words + ["-x", "c++"] for header, words in headers.items()}


def compiles(file, words):
    result = subprocess.run([*words, file], stderr=subprocess.PIPE, text=True)
    if result.returncode:
        print("%s does not compile alone:\n%s" % (file.relative_to(root), result.stderr), flush=True)
    return result.returncode == 0


options = options_by_source()
options.update(headers_not_first(options))
with ThreadPoolExecutor(os.cpu_count()) as pool:
    good = list(pool.map(compiles, options.keys(), options.values()))
print("%d of %d files compile alone" % (sum(good), len(good)))
sys.exit(not all(good))
