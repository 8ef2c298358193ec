"""30 odd files as instruments, sites and other programs leave them, with the expected answers; see trials. Those of arrays are in
trial_arrays.py."""
import gzip
import io
import json
import os
import struct
import tarfile

import trial_arrays
from trial import LATTICES, NOT_DAMAGED, RUN, STATS, channel_means, collector, inspect, keep, kept_means, np, ramp, stats

TRIALS = list(trial_arrays.TRIALS)
trial = collector(TRIALS)
TRAIN = "$P train run.toml --max-steps 2 --output-dir o"


# Archives and images

def jpeg(shade, kind="JPEG", mode="RGB"):
    from PIL import Image
    out = io.BytesIO()
    Image.new(mode, (40, 36), shade).save(out, kind)
    return out.getvalue()


def shard(names, mode="w", shade=90):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:
        for i, name in enumerate(names):
            for member, content in ((f"{name}.jpg", jpeg((shade, 20 * i, 0))), (f"{name}.cls", str(i % 2).encode())):
                info = tarfile.TarInfo(member)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


@trial("archives", inspect("set"), error=[r"1\.tar", r"end|cut|trunc|bytes|missing|short"], codes=(1, 2))
def tar_cut_between_members(folder):
    """A shard whose copy ended in the middle of a member's content."""
    (folder / "set/train").mkdir(parents=True)
    (folder / "set/train/0.tar").write_bytes(shard(["a", "b"]))
    (folder / "set/train/1.tar").write_bytes(shard(["c", "d"])[:1200])


@trial("archives", inspect("set"), ok=[r"\b4 (training )?images"], error=[r"0\.tar", r"gzip|packed|compressed", r"gunzip|unpack|gzip -d|tar "],
       codes=(1, 2), never=NOT_DAMAGED)
def tar_packed_under_its_name(folder):
    """A shard that is packed with gzip, though its name ends in .tar: read, or the remedy is named."""
    (folder / "set/train").mkdir(parents=True)
    (folder / "set/train/0.tar").write_bytes(shard(["a", "b", "c", "d"], "w:gz"))


@trial("images", inspect("set"), ok=[r"\b9 (training )?images|(bmp|webp|tif)"], error=[r"\.(bmp|webp|tif)", r"BMP|WebP|TIFF|read|JPEG"],
       codes=(1, 2), never=NOT_DAMAGED)
def images_of_many_kinds(folder):
    """Class folders with BMP, WebP, TIFF, CMYK, 16-bit grey and a JPEG without extension among them: nothing is left out without a word."""
    for name in ("cat", "dog", "owl"):
        (folder / "set/train" / name).mkdir(parents=True)
    made = {"cat/1.bmp": jpeg((9, 9, 9), "BMP"), "cat/2.jpg": jpeg((9, 9, 9)), "cat/3": jpeg((8, 9, 9)), "dog/1.webp": jpeg((9, 99, 9), "WEBP"),
            "dog/2.jpeg": jpeg((9, 9, 9, 9), "JPEG", "CMYK"), "dog/3.png": jpeg(4000, "PNG", "I;16"), "owl/1.tif": jpeg((9, 9, 99), "TIFF"),
            "owl/2.JPG": jpeg(99, "JPEG", "L"), "owl/3.png": jpeg((9, 9, 9, 9), "PNG", "RGBA")}
    for name, content in made.items():
        (folder / "set/train" / name).write_bytes(content)


@trial("links", inspect("set"), ok=[r"\b4 (training )?images"], error=[r"link|loop", r"back|also"], never=NOT_DAMAGED)
def links_that_lead_back(folder):
    """Class folders with a link to the folder above all, and another one to that link: four images, or the link's name, and an end."""
    for name in ("cat", "dog"):
        (folder / "set/train" / name).mkdir(parents=True)
        for i in range(2):
            (folder / f"set/train/{name}/{i}.jpg").write_bytes(jpeg((60 * i, 9, 9)))
    os.symlink("../../..", folder / "set/train/cat/back")
    os.symlink("../cat/back", folder / "set/train/dog/also")


# Trajectories, records, logs, texts, weights

@trial("trajectories", STATS, ok=[kept_means], never=NOT_DAMAGED)
def dcd_of_three_titles(folder):
    """A big-endian DCD whose title record has three lines, and whose header counts more frames than there are."""
    frames = ramp((5, 4, 3)).astype("f4")
    record = lambda content: struct.pack(">i", len(content)) + content + struct.pack(">i", len(content))  # noqa: E731
    numbers = [0] * 20
    numbers[0], numbers[19] = 1000, 24
    file = record(b"CORD" + struct.pack(">20i", *numbers)) + record(struct.pack(">i", 3) + b"x" * 240) + record(struct.pack(">i", 4))
    for frame in frames:
        for axis in range(3):
            file += record(np.ascontiguousarray(frame[:, axis]).astype(">f4").tobytes())
    (folder / "run.dcd").write_bytes(file)
    keep(folder, channel_means(frames))
    stats(folder, "x: from coordinates axis 0", "run.dcd")


def masked_crc(content):
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def tfrecord(samples):
    """Examples with a feature `x` of floats."""
    def part(tag, content):
        assert len(content) < 128
        return bytes([tag, len(content)]) + content
    out = b""
    for values in samples:
        floats = part(0x12, part(0x0A, struct.pack(f"<{len(values)}f", *values)))
        example = part(0x0A, part(0x0A, part(0x0A, b"x") + part(0x12, floats)))
        length = struct.pack("<Q", len(example))
        out += length + masked_crc(length) + example + masked_crc(example)
    return out


@trial("records", STATS, ok=[kept_means], never=NOT_DAMAGED)
def tfrecord_numbered_and_packed(folder):
    """Numbered shards whose names end in -of-00002.gz, packed with gzip."""
    samples = ramp((6, 3), 1.25)
    for i in range(2):
        (folder / f"set.tfrecord-0000{i}-of-00002.gz").write_bytes(gzip.compress(tfrecord(samples[3 * i:3 * i + 3])))
    keep(folder, channel_means(samples))
    stats(folder, "x: from x", "set.tfrecord-*")


CLICKS = RUN + '[data]\ndataset = "clicks"\ndir = "."\ntrain_files = ["log.csv"]\nvalidation = 0.2\ntable_rows = [50]\n'
CLICKS += '[model]\nname = "dlrm"\nwidth = 4\nhidden = [8]\n'


@trial("click logs", TRAIN, ok=[r"done: 2 steps"], error=[r"log\.csv", r";|semicolon"], limit=60, never=NOT_DAMAGED)
def clicks_of_a_spreadsheet(folder):
    """A log that a German spreadsheet saved: a byte-order mark, semicolons, CRLF."""
    lines = ["Label;I1;I2;C1;C2"] + [f"{i % 3 // 2};{i};{i % 7};a{i % 5};b{i % 4}" for i in range(80)]
    (folder / "log.csv").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode() + b"\r\n")
    (folder / "run.toml").write_text(CLICKS)


@trial("texts", TRAIN, error=[r"train\.txt", r"UTF-?16"], limit=60, never=NOT_DAMAGED)
def text_in_utf16(folder):
    """A text of a Windows editor, UTF-16 with its mark, read as characters."""
    (folder / "train.txt").write_bytes(("Wie schön ist es hier.\r\n" * 60).encode("utf-16"))
    (folder / "run.toml").write_text(RUN + '[data]\ndataset = "text"\ndir = "."\ntrain_files = ["train.txt"]\nvalidation = 0.2\nwindow = 16\n'
                                     '[model]\nname = "gpt2"\ndepth = 1\nwidth = 16\nheads = 2\n')


WRAP = """$PYTHON -c '
import json, pathlib, struct
raw = max(pathlib.Path("o/checkpoints").glob("step_*/weights.safetensors")).read_bytes()
size, = struct.unpack("<Q", raw[:8])
head = {k if k == "__metadata__" else "net." + k: v for k, v in json.loads(raw[8:8 + size]).items()}
text = json.dumps(head).encode()
pathlib.Path("wrapped.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + size:])
'"""


@trial("weights", "$P eval run.toml --weights wrapped.safetensors", ok=[r"8 samples, accuracy \d"], error=[r"wrapped\.safetensors", r"net\."],
       limit=60, never=NOT_DAMAGED,
       before=[TRAIN, WRAP])
def weights_of_a_wrapper(folder):
    """Weights whose names all begin with net., as a wrapper saves them: taken, or the message says so."""
    (folder / "run.toml").write_text(LATTICES)


@trial("weights", "$P eval run.toml --weights model.safetensors.index.json", error=[r"index\.json", r"part|shard|model-0000\d-of|index of"], limit=60,
       never=NOT_DAMAGED + (r"\d{12,}",))
def weights_of_an_index(folder):
    """An index of parts, of which the second is not there."""
    (folder / "run.toml").write_text(LATTICES)
    parts = {"conv1.weight": "model-00001-of-00002.safetensors", "fc.weight": "model-00002-of-00002.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": 8}, "weight_map": parts}))
    text = b'{"conv1.weight":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}'
    (folder / "model-00001-of-00002.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(4))
