#!/usr/bin/env python3
"""What a straight line knows of diffraction patterns: ridge regression from log(1 + 30 image) to a field of `tutti data generate cbed`.

    ridge_patterns.py TRAIN VALIDATION FIELD [SCALE]     FIELD: parameters, potential (SCALE 30, as the recipe divides it)

TRAIN and VALIDATION are the folders of the set. Prints the mean absolute error of the training set's mean and of the best of a few ridges, chosen on the
validation set, which flatters it.
"""
import pathlib
import sys
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent))
import one_line  # what is said of inputs
import glob

import h5py
import numpy as np


def field(folder, name):
    return np.concatenate([h5py.File(path)[name][:] for path in sorted(glob.glob(folder + "/*.h5"))]).astype("f4")


def features(folder):
    image = field(folder, "image")
    x = np.log1p(30 * image).reshape(len(image), -1)
    return np.concatenate([x, np.ones((len(x), 1), "f4")], 1)


def main():
    train, validation, name = sys.argv[1:4]
    scale = float(sys.argv[4]) if len(sys.argv) > 4 else 1
    y, truth = field(train, name) / scale, field(validation, name) / scale
    print(f"{len(y)} and {len(truth)} samples; the mean: {np.abs(truth - y.mean(0)).mean():.4f}")
    x, other = features(train), features(validation)
    square, right = x.T @ x, x.T @ y.reshape(len(y), -1)
    errors = {}
    for strength in (1e1, 1e2, 1e3, 1e4, 1e5):
        weights = np.linalg.solve(square + strength * np.eye(len(square), dtype="f4"), right)
        errors[strength] = np.abs((other @ weights).reshape(truth.shape) - truth)
    best = min(errors, key=lambda s: errors[s].mean())
    each = f", each {np.round(errors[best].mean(0), 4)}" if truth.ndim == 2 else ""
    print(f"ridge of {best:g}: {errors[best].mean():.4f}{each}")


if __name__ == "__main__":
    main()
