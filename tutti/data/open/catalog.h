#pragma once
// Describes the data sets that Tutti knows by name: their content, their files, and how to get
// them. Tutti downloads nothing unless `tutti data fetch` asks for it.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/data/format/sets/known_dataset.h"

namespace tutti::data {

/// Lists the sets in the order in which people see them; the last one is arrays, which is any
/// files. A configuration's data.dataset takes their names.
const std::vector<KnownDataset>& known_datasets();

/// Finds a set. ConfigError listing the known names.
const KnownDataset& known_dataset(std::string_view name);

/// Returns the names that a file of the catalog may have: its own, with .gz, and for IDX files with
/// a dot for the dash ("train-images.idx3-ubyte"), as on some mirrors.
std::vector<std::string> spellings_of(std::string file);

/// Returns the sets that 'tutti data generate' makes: named data sets, and sets read as arrays.
std::vector<std::string> generated_sets();
/// Returns their names: "lattices, cosmoflow, deepcam, imagenet, neurons, cbed, stem, clicks, text,
/// token-pairs, protein and vibrations".
std::string names_of_generated();

/// Returns how_to_get for this folder (or this file's folder), for the end of error messages:
/// commands in it can be typed as they stand, and do not replace downloaded samples by generated
/// ones.
std::string how_to_get(const KnownDataset& known, const std::filesystem::path& dir);

}  // namespace tutti::data
