#pragma once
// Suggests a configuration to start from, for files without any description.

#include <filesystem>
#include <string>
#include <vector>

#include "tutti/data/arrays/field_line.h"

namespace tutti::cli {

/// An array of a file that may be a field.
struct FoundArray {
  std::string name;
  bool whole_numbers = false;
  bool wide = false;             ///< whole numbers of 32 bits or more: labels or counts, no image
  std::vector<int64_t> shape{};  ///< shape in the file; of a feature: its number of values
  std::string as{};              ///< further words for its line: " as i16 ? ? ? 4"
  bool unreadable = false;       ///< no field has its type: it is only listed
};

struct SuggestedFiles {
  std::filesystem::path dir;                         ///< data.dir
  std::vector<std::string> train, validation, test;  ///< file patterns; empty: no such set
};

/// Samples that a configuration takes out of its training set where there are no others for
/// evaluation.
struct HeldOut {
  std::string line;  ///< "validation = ..."; empty where there is only one sample
  int64_t left = 0;  ///< training samples that remain
};
HeldOut held_out(int64_t samples);

/// Chooses an input and a target among the arrays, reads some samples, and writes a configuration
/// that trains on them: a complete file for `tutti train`. Where no field is a likely target, the
/// network learns to reproduce its input. Returns text that begins with '#' and gives the reason
/// where nothing can be suggested.
std::string suggested_configuration(const std::vector<FoundArray>& arrays,
                                    const SuggestedFiles& files);

}  // namespace tutti::cli
