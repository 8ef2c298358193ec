#!/usr/bin/env python3
"""What a straight line knows of vibrations: ridge regression from the logarithm of each sensor's power spectrum, as modal analysis looks at it, to the
class and the parameters of `tutti data generate vibrations`.

    ridge_vibrations.py FOLDER

Prints the share of classes that are right, and the mean absolute error of the parameters: of always saying the mean, and of the best of a few ridges,
chosen on the validation set, which flatters it.
"""
import pathlib
import sys
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent))
import one_line  # what is said of inputs

import h5py
import numpy as np


def read(path):
    with h5py.File(path) as file:
        return tuple(file[name][:] for name in ("signals", "class", "parameters"))


def features(signals):
    samples = signals.shape[1]
    spectra = np.abs(np.fft.rfft(signals * np.hanning(samples)[None, :, None], axis=1)) ** 2
    x = np.log(1e-3 + spectra).reshape(len(signals), -1)
    return np.concatenate([x, np.ones((len(x), 1))], 1)


def main():
    (x, kind, numbers), (other, truth, wanted) = (read(f"{sys.argv[1]}/{part}.h5") for part in ("train", "validation"))
    print(f"the mean: mae {np.abs(wanted - numbers.mean(0)).mean():.4f}")
    x, other, classes = features(x), features(other), np.eye(kind.max() + 1)[kind]
    square, right = x.T @ x, x.T @ np.concatenate([classes, numbers], 1)
    for strength in (1e0, 1e1, 1e2, 1e3, 1e4):
        y = other @ np.linalg.solve(square + strength * np.eye(len(square)), right)
        accuracy = (y[:, : classes.shape[1]].argmax(1) == truth).mean()
        print(f"ridge of {strength:g}: accuracy {accuracy:.4f}, mae {np.abs(y[:, classes.shape[1] :] - wanted).mean():.4f}")


if __name__ == "__main__":
    main()
