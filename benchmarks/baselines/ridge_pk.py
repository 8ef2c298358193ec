#!/usr/bin/env python3
"""What a power spectrum knows of the cosmology: the baseline that a network has to beat.

  ridge_pk.py TRAIN VALIDATION [--extra]

TRAIN and VALIDATION are folders of files univ_*.tfrecord with a volume each, plain, as `tutti data generate cosmoflow`
writes them; or with x.npy, int16 [N,S,S,S,C] (counts, C redshifts), and y.npy, float32
[N,4] (parameters in [-1, 1]), as generate_cosmology writes them. Features, fixed before anything was
trained: per channel, the logarithm of P(k) in 16 bins, equal in log k from the box's fundamental wave to
the grid's Nyquist wave, of two contrasts: n / <n> - 1 and log(1 + n) / <log(1 + n)> - 1. Each parameter
is a linear function of the standardised features, fitted by ridge regression; its strength is, per
parameter, the one of least leave-one-out squared error on TRAIN. Printed: the mean absolute error on
VALIDATION, by parameter and over all, of the mean of TRAIN, of the ridge, and with --extra of a ridge
that also sees numbers beyond a power spectrum: the shares of cells by count, and variance, skewness,
kurtosis and the density of peaks, in cells of 1, 2 and 4: whether there is more to learn. Needs numpy only.
"""
import pathlib
import sys
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent))
import one_line  # what is said of inputs
import argparse
import time

import numpy as np

NAMES = ("omega_m", "sigma_8", "n_s", "h")
BINS = 16
STRENGTHS = np.logspace(-4, 5, 37)


class Spectrum:
    """P(k) of a cubic periodic field of one side, in BINS bins; a bin without a mode is left out."""

    def __init__(self, side):
        waves = np.fft.fftfreq(side, 1 / side)
        last = np.arange(side // 2 + 1)
        k = np.sqrt(waves[:, None, None] ** 2 + waves[None, :, None] ** 2 + last[None, None, :] ** 2)
        edges = np.geomspace(1, side / 2, BINS + 1)
        self.bin = np.digitize(k, edges * (1 + 1e-9)).ravel()
        self.bin[k.ravel() < 0.5] = BINS + 1
        self.weight = np.broadcast_to(np.where((last == 0) | (2 * last == side), 1.0, 2.0), k.shape).ravel()
        self.modes = np.bincount(self.bin, self.weight, BINS + 2)[:BINS + 1]
        self.kept = self.modes > 0

    def __call__(self, field):
        modes = np.fft.rfftn(field)
        power = (modes.real ** 2 + modes.imag ** 2).ravel()
        sums = np.bincount(self.bin, self.weight * power, BINS + 2)[:BINS + 1]
        return np.log(sums[self.kept] / self.modes[self.kept] / field.size)


def spectra(volume, spectrum):
    for channel in range(volume.shape[-1]):
        counts = volume[..., channel].astype(np.float64)
        for field in (counts, np.log1p(counts)):
            yield from spectrum(field / field.mean() - 1)


def blocks(counts, width):
    """Sums of counts in cubes of width^3 cells."""
    side = counts.shape[0] // width * width
    parts = side // width
    return counts[:side, :side, :side].reshape(parts, width, parts, width, parts, width).sum((1, 3, 5))


def beyond_spectra(volume):
    for channel in range(volume.shape[-1]):
        counts = volume[..., channel].astype(np.float64)
        shares = np.bincount(np.minimum(volume[..., channel], 64).ravel(), minlength=65) / counts.size
        for low, high in ((0, 1), (1, 2), (2, 3), (3, 4), (4, 6), (6, 9), (9, 13), (13, 20), (20, 32), (32, 65)):
            yield np.log(shares[low:high].sum() + 1 / counts.size)
        for width in (1, 2, 4):
            contrast = blocks(counts, width)
            contrast = contrast / contrast.mean() - 1
            variance = contrast.var()
            yield np.log(variance)
            yield np.arcsinh(np.mean(contrast ** 3) / variance ** 1.5)  # may be negative
            yield np.log(np.mean(contrast ** 4) / variance ** 2)
            higher = np.ones(contrast.shape, bool)
            for axis in range(3):
                for shift in (1, -1):
                    higher &= contrast > np.roll(contrast, shift, axis)
            for threshold in (1, 3):
                yield np.log((higher & (contrast > threshold)).mean() + 1 / contrast.size)


def varint(data, at):
    value, shift = 0, 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def messages(data):
    """The fields of a protocol buffer's message that have a length: number, bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 != 2:
            raise ValueError(f"a field of wire type {key & 7} in a tf.train.Example")
        size, at = varint(data, at)
        yield key >> 3, data[at:at + size]
        at += size


class TfRecords:
    """The volumes of a folder's files, read one after the other. Checksums are not looked at."""

    def __init__(self, folder):
        self.files = sorted(folder.glob("univ_*.tfrecord"))
        self.y = np.array([np.frombuffer(self.feature(f, b"y"), "<f4") for f in self.files], np.float64)
        channels = 4
        side = round((len(self.feature(self.files[0], b"x")) / 2 / channels) ** (1 / 3))
        self.shape = (len(self.files), side, side, side, channels)

    @staticmethod
    def feature(file, name):
        # A record: length in 8 bytes, its checksum in 4, an Example {1: Features {1: map of name and Feature}}.
        data = memoryview(file.read_bytes())
        (_, features), = messages(data[12:12 + int.from_bytes(data[:8], "little")])
        for _, entry in messages(features):
            (_, key), (_, value) = messages(entry)
            if key == name:
                (_, values), = messages(value)  # BytesList or FloatList
                (_, content), = messages(values)
                return content
        raise ValueError(f"{file} has no feature {name.decode()}")

    def __len__(self):
        return len(self.files)

    def __iter__(self):
        for file in self.files:
            yield np.frombuffer(self.feature(file, b"x"), "<i2").reshape(self.shape[1:])


def load(folder):
    """Volumes, which can be iterated over, and parameters."""
    if any(folder.glob("univ_*.tfrecord")):
        records = TfRecords(folder)
        return records, records.y
    return np.load(folder / "x.npy", mmap_mode="r"), np.load(folder / "y.npy").astype(np.float64)


def features(x, extra):
    spectrum = Spectrum(x.shape[1])
    rows = []
    for volume in x:
        row = list(spectra(volume, spectrum))
        rows.append(row + list(beyond_spectra(volume)) if extra else row)
    return np.array(rows), sum(spectrum.kept) * 2 * x.shape[-1]


def ridge(train, y, validation):
    """Predictions for `validation`, and the strengths that leave-one-out chose."""
    mean, scale = train.mean(0), train.std(0)
    scale[scale == 0] = 1
    a, b = (train - mean) / scale, (validation - mean) / scale
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    centre = y.mean(0)
    projected = u.T @ (y - centre)
    best = np.full(y.shape[1], np.inf)
    chosen, predicted = np.zeros(y.shape[1]), np.zeros((len(b), y.shape[1]))
    for strength in STRENGTHS:
        shrink = s ** 2 / (s ** 2 + strength)
        leverage = (u ** 2) @ shrink + 1 / len(a)
        left_out = (y - centre - u @ (shrink[:, None] * projected)) / (1 - leverage)[:, None]
        error = np.mean(left_out ** 2, 0)
        weights = vt.T @ ((s / (s ** 2 + strength))[:, None] * projected)
        for p in np.flatnonzero(error < best):
            best[p], chosen[p], predicted[:, p] = error[p], strength, b @ weights[:, p] + centre[p]
    return predicted, chosen


def report(name, predicted, y):
    error = np.abs(predicted - y)
    columns = "".join(f"  {n} {e:.4f}" for n, e in zip(NAMES, error.mean(0)))
    half = error.mean(1).std() / np.sqrt(len(y))
    print(f"{name:26s} MAE {error.mean():.4f} +- {half:.4f} {columns}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=pathlib.Path)
    parser.add_argument("validation", type=pathlib.Path)
    parser.add_argument("--extra", action="store_true", help="also a ridge with features beyond the power spectrum")
    options = parser.parse_args()
    start = time.time()
    sets = []
    for folder in (options.train, options.validation):
        x, y = load(folder)
        if len(x) != len(y) or len(x.shape) != 5:
            parser.error(f"{folder}: x {x.shape} and y {y.shape} are not [N,S,S,S,C] and [N,4]")
        f, plain = features(x, options.extra)
        sets.append((f, y))
    (train, y), (validation, truth) = sets
    print(f"{len(train)} training and {len(validation)} validation volumes of side {x.shape[1]}; "
          f"{plain} features of spectra; {time.time() - start:.0f} s")
    report("mean of the training set", np.broadcast_to(y.mean(0), truth.shape), truth)
    predicted, chosen = ridge(train[:, :plain], y, validation[:, :plain])
    report("ridge on log P(k)", predicted, truth)
    print("  strengths", " ".join(f"{c:.3g}" for c in chosen))
    if options.extra:
        report("ridge, features beyond too", ridge(train, y, validation)[0], truth)
        report("ridge, only those beyond", ridge(train[:, plain:], y, validation[:, plain:])[0], truth)


if __name__ == "__main__":
    main()
