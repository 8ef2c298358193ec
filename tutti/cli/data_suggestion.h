#pragma once
// A configuration to start from, for files that nobody has described yet.

#include <filesystem>
#include <string>
#include <vector>

#include "tutti/data/arrays/field_line.h"

namespace tutti {

/// What a file offers as a field.
struct FoundArray {
  std::string name;
  bool whole_numbers = false;
  bool wide = false;           ///< whole numbers of 32 bits or more: labels or counts, no picture
  std::vector<int64_t> shape;  ///< in the file; of a feature: its values
  std::string as;              ///< what its line must say besides: " as i16 ? ? ? 4"
};

struct SuggestedFiles {
  std::filesystem::path dir;                   ///< data.dir
  std::vector<std::string> train, validation;  ///< entries; without the second, the first stand
                                               ///< for it
  std::vector<std::string> test;               ///< entries; empty: no test set
};

/// Chooses an input and a target among the arrays, reads some samples, and writes a configuration
/// that trains on them: the whole of a file for `tutti train`. Where no field is a likely target,
/// the network is to give back its input. Text that begins with '#' and says why where nothing can
/// be suggested.
std::string suggested_configuration(const std::vector<FoundArray>& arrays,
                                    const SuggestedFiles& files);

}  // namespace tutti
