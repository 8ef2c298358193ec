#pragma once
// [[model.layer]]: from TOML to tables of layers, each mistake with its place.

#include <toml++/toml.h>

#include <string>
#include <vector>

#include "tutti/cli/config/config_hints.h"
#include "tutti/models/block/layer_table.h"

namespace tutti {

struct LayerSource {
  const std::string& file;
  size_t number;  ///< of the source, in the order of reading (SettingPlace)
};

/// The tables of a list, without what is wrong in them, which is added to `mistakes`.
std::vector<LayerTable> read_layers(const toml::node& node, const LayerSource& source,
                                    Mistakes& mistakes);

/// A table as it stands, keys in the order of writing. ConfigError naming a key whose value is a
/// table, a date or a mixed list.
LayerTable layer_of(const toml::table& table);

}  // namespace tutti
