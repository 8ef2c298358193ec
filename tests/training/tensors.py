#!/usr/bin/env python3
"""What is in .safetensors files, with checksums.

tensors.py all FILE: a line "NAME CHECKSUM" for each tensor, by name, in whichever order they lie.
tensors.py kept CHECKPOINT...: what the ranks of each checkpoint keep: each replica's statistics and seeds, whichever rank had them, and what
is a rank's own. Ends with 1 where there are several, and they differ or keep nothing.
"""
import glob
import json
import re
import struct
import sys
import zlib


def tensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: data[slice(*entry["data_offsets"])] for name, entry in header.items()}


def kept(checkpoint):
    paths = sorted(glob.glob(f"{checkpoint}/ranks/*.safetensors"), key=lambda path: int(re.sub(r".*/(\d+)\D*$", r"\1", path)))
    of_ranks = [tensors(path) for path in paths]
    shared = [name for name in of_ranks[0] if name.startswith(("replicas/", "seeds/"))]
    return ([f"{name} {zlib.crc32(b''.join(rank[name] for rank in of_ranks)):08x}" for name in shared] +
            [f"{name} {zlib.crc32(data):08x}" for rank in of_ranks for name, data in rank.items() if name.startswith("compression")])


if sys.argv[1] == "all":
    print("\n".join(f"{name} {zlib.crc32(data):08x}" for name, data in sorted(tensors(sys.argv[2]).items())))
else:
    found = [kept(checkpoint) for checkpoint in sys.argv[2:]]
    for one in found:
        print("\n".join(one), end="\n\n")
    sys.exit(len(found) > 1 and (not found[0] or any(one != found[0] for one in found)))
