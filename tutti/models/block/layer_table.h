#pragma once
// A layer as a table of keys and values, as a configuration writes it: [[model.layer]].

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tutti::models {

using LayerValue = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                                std::vector<double>, std::vector<std::string>>;

struct LayerTable {
  std::vector<std::pair<std::string, LayerValue>> entries{};  ///< in the order of writing
  std::string where{};  ///< "run.toml:12:1", for messages; empty: not from a file

  /// Returns null where the key is not given.
  const LayerValue* find(std::string_view key) const {
    for (const auto& [name, value] : entries)
      if (name == key) return &value;
    return nullptr;
  }
  /// Compares entries only, not where the tables were written.
  bool operator==(const LayerTable& other) const { return entries == other.entries; }
};

}  // namespace tutti::models
