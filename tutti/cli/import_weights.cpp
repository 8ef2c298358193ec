#include "tutti/cli/import_weights.h"

#include "tutti/base/error.h"
#include "tutti/base/shell.h"

namespace tutti {

void import_weights(const std::string& verb, const std::filesystem::path& path,
                    const std::string& config, const SafetensorsFile& file, Weights& weights) {
  try {
    weights.import_model(file);
  } catch (const ConfigError& error) {
    const std::string own = configuration_near(path);
    if (own.empty() || own == config) throw;
    throw ConfigError(
        fmt::format("{}; the run of these weights had the configuration {}: tutti {} {} --weights "
                    "{}",
                    error.what(), own, verb, shell_word(own), shell_word(path.string())));
  }
}

}  // namespace tutti
