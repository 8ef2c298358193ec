#pragma once
// [[model.layer]]: reads tables of layers from TOML; each mistake has its place.

#include <toml++/toml.h>

#include <string>
#include <vector>

#include "tutti/cli/config/config_hints.h"
#include "tutti/models/block/layer_table.h"

namespace tutti::cli {

struct LayerSource {
  const std::string& file;
  size_t number;  ///< number of the source, in the order of reading (SettingPlace)
};

/// Returns the tables of a list without their mistakes, which are added to `mistakes`.
std::vector<models::LayerTable> read_layers(const toml::node& node, const LayerSource& source,
                                            Mistakes& mistakes);

/// Returns a table as it stands, keys in the order of writing. Throws ConfigError naming a
/// key whose value is a table, a date or a mixed list.
models::LayerTable layer_of(const toml::table& table);

}  // namespace tutti::cli
