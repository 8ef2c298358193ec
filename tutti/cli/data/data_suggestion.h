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
  bool wide = false;             ///< whole numbers of 32 bits or more: labels or counts, no picture
  std::vector<int64_t> shape{};  ///< in the file; of a feature: its values
  std::string as{};              ///< what its line must say besides: " as i16 ? ? ? 4"
  bool unreadable = false;       ///< of a type that no field has: listed alone
};

struct SuggestedFiles {
  std::filesystem::path dir;                         ///< data.dir
  std::vector<std::string> train, validation, test;  ///< entries; empty: no such set
};

/// Samples that a configuration takes out of its training set where there is nothing else to judge
/// by.
struct HeldOut {
  std::string line;  ///< "validation = ..."; empty where there is one sample
  int64_t left = 0;  ///< training samples
};
HeldOut held_out(int64_t samples);

/// Chooses an input and a target among the arrays, reads some samples, and writes a configuration
/// that trains on them: the whole of a file for `tutti train`. Where no field is a likely target,
/// the network is to give back its input. Text that begins with '#' and says why where nothing can
/// be suggested.
std::string suggested_configuration(const std::vector<FoundArray>& arrays,
                                    const SuggestedFiles& files);

}  // namespace tutti
