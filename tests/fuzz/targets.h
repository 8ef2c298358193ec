#pragma once
// One function for each parser of files that come from outside: it takes any bytes and returns. A
// typed error that the parser may throw (IoError, ConfigError) is an answer; any other exception
// leaves the function and is a finding.

#include <cstdint>
#include <span>
#include <string_view>

namespace tutti::fuzz {

using Bytes = std::span<const uint8_t>;

struct Target {
  std::string_view name;  ///< also the name of its folder in corpus/
  void (*run)(Bytes bytes);
};

/// Returns parsers of data sets: idx, cifar, lattices, npy, npz, raw_arrays, hdf5, netcdf, tiff,
/// dcd, trr, xtc, pdb, gro, psf, parm7, selection, volume, tfrecord, tf_example, field_line,
/// statistics, steps, url_list, tar, jpeg, png, click_log, click_vocabulary.
std::span<const Target> data_targets();
/// Returns parsers of texts: text, token_file, pairs, vocabulary.
std::span<const Target> text_targets();
/// Returns parsers of files that runs write and read: safetensors, weights, record, manifest,
/// config, layers, machine, algorithms, choices; and inspect, which detects what a file is.
std::span<const Target> run_targets();

}  // namespace tutti::fuzz
