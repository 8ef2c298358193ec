#include "tutti/cli/config/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>

#include "tutti/base/error.h"
#include "tutti/cli/config/config_hints.h"
#include "tutti/cli/config/config_layers.h"
#include "tutti/cli/config/config_paths.h"
#include "tutti/cli/config/config_value.h"
#include "tutti/cli/flags/suggest.h"
#include "tutti/data/file/text_file.h"
#include "tutti/train/settings/goal.h"
#include "tutti/train/settings/idle_keys.h"
#include "tutti/train/settings/validation.h"

extern char** environ;

namespace tutti::cli {
namespace {

constexpr std::string_view kPrefix = "TUTTI_";

/// Variables with the prefix that are not keys: --ranks is a flag of its own, the launched ranks
/// receive in a variable where to report, and no result depends on the emulated device's seed.
const std::vector<std::string> kOtherVariables = {"TUTTI_RANKS", "TUTTI_CACHE_DIR",
                                                  kRankTableVariable, kEmulatedSeedVariable};

/// Pairs of keys that set the same thing in two ways: giving one in a stronger source withdraws the
/// other.
constexpr std::pair<std::string_view, std::string_view> kAlternatives[] = {
    {"batch.local", "batch.global"}, {"schedule.warmup_epochs", "schedule.warmup_steps"}};

struct Assignment {
  const config::ConfigKey* row;
  config::ConfigValue value;
  std::string where;
  SettingPlace at;
  PathsOfKey paths{};
};

/// Returns the value as set() wants it: with suffixes of units applied and paths resolved.
Assignment assignment_of(const config::ConfigKey& row, const config::ConfigValue& value,
                         const PathSource& source, std::string where, SettingPlace at) {
  Assignment found{&row, {}, std::move(where), at, {.folder = source.folder}};
  found.value = row.path == config::PathKind::none
                    ? without_suffix(row, value)
                    : placed_value(row, value, source, found.paths.relative);
  return found;
}

/// Reads one file and, before it, the files it includes; each file appends one source (weakest
/// first).
class FileReader {
 public:
  FileReader(std::vector<std::vector<Assignment>>& sources, Mistakes& mistakes)
      : sources_(sources), mistakes_(mistakes) {}

  void read(const std::filesystem::path& path, const std::string& included_at) {
    const std::string name = path.string();
    const std::string from = included_at.empty() ? "" : included_at + ": ";
    std::error_code ignored;
    const auto identity = std::filesystem::weakly_canonical(path, ignored);
    if (std::ranges::find(open_, identity) != open_.end())
      throw ConfigError(fmt::format("{}{} includes itself", from, name));
    if (std::filesystem::is_directory(path, ignored))
      throw ConfigError(
          fmt::format("{}the configuration file {} is a folder: name a file in it", from, name));
    const std::string text = text_of(path, from);
    open_.push_back(identity);
    try {
      read_table(toml::parse(text, name), path);
    } catch (const toml::parse_error& error) {
      throw ConfigError(fmt::format("{}: {}{}", place(name, error.source()), error.description(),
                                    syntax_hint(text, error.source().begin.line)));
    }
    open_.pop_back();
  }

 private:
  struct OpenFile {
    std::string name;
    PathSource paths;
  };

  /// A file that the command line names may be a pipe; reading an included pipe would block.
  static std::string text_of(const std::filesystem::path& path, const std::string& from) {
    try {
      if (auto text = data::read_small_text(
              path, {.expected = "a configuration", .any_kind = from.empty()}))
        return std::move(*text);
    } catch (const IoError& error) {
      throw ConfigError(from + error.what());
    }
    throw ConfigError(
        fmt::format("{}cannot read the configuration file {}: check its path and permissions", from,
                    path.string()));
  }

  void read_table(const toml::table& root, const std::filesystem::path& path) {
    if (const toml::node* include = root.get("include")) {
      const std::string at = place(path.string(), include->source());
      for (const std::string& other : include_list(*include, at))
        read(path.parent_path() / other, at);
    }
    const PathSource paths = paths_of_file(path);
    std::vector<Assignment> found;
    for (const auto& [key, node] : root) {
      if (key == "include") continue;
      walk(std::string(key.str()), key.source(), node, {path.string(), paths}, found);
    }
    sources_.push_back(std::move(found));
  }

  static std::vector<std::string> include_list(const toml::node& node, const std::string& at) {
    if (const auto one = node.value<std::string>()) return {*one};
    const auto* array = node.as_array();
    if (!array || !array->is_homogeneous<std::string>())
      throw ConfigError(at + ": include must be a file name or a list of file names");
    return std::get<std::vector<std::string>>(value_of(*array));
  }

  /// Descends to the leaves, so that a misspelt section is reported with its keys.
  void walk(const std::string& name, const toml::source_region& at, const toml::node& node,
            const OpenFile& in, std::vector<Assignment>& found) {
    const std::string& file = in.name;
    const config::ConfigKey* row = config::find_config_key(name);
    const toml::table* table = node.as_table();
    const bool group = std::any_of(config::config_groups().begin(), config::config_groups().end(),
                                   [&](const config::ConfigGroup& g) { return g.name == name; });
    if (!row && table && (group || !table->empty())) {
      for (const auto& [key, child] : *table)
        walk(fmt::format("{}.{}", name, key.str()), key.source(), child, in, found);
      return;
    }
    if (group)
      return mistakes_.add(at_place(at),
                           fmt::format("{}: '{}' is a section: write [{}] and its keys below",
                                       place(file, at), name, name));
    if (row && row->type == config::ConfigType::layers) {
      auto layers = read_layers(node, {file, sources_.size()}, mistakes_);
      found.push_back({row, std::move(layers), place(file, at), at_place(at)});
      return;
    }
    if (!row)
      return mistakes_.add(at_place(at), fmt::format("{}: {}", place(file, at), unknown_key(name)));
    try {
      found.push_back(assignment_of(*row, value_of(node), in.paths, place(file, node.source()),
                                    at_place(node.source())));
    } catch (const ConfigError& error) {
      mistakes_.add(at_place(node.source()),
                    fmt::format("{}: {} {}", place(file, node.source()), name, error.what()));
    }
  }

  SettingPlace at_place(const toml::source_region& at) const {
    return {sources_.size(), at.begin.line, at.begin.column};
  }

  std::vector<std::vector<Assignment>>& sources_;
  Mistakes& mistakes_;
  std::vector<std::filesystem::path> open_;
};

void read_setting(const Setting& setting, size_t source, std::vector<Assignment>& found,
                  Mistakes& mistakes) {
  const SettingPlace at{.source = source, .line = found.size()};
  const config::ConfigKey* row = config::find_config_key(setting.key);
  if (!row) return mistakes.add(at, fmt::format("{}: {}", setting.where, unknown_key(setting.key)));
  try {
    found.push_back(assignment_of(*row, parse_setting(*row, setting.text), {}, setting.where, at));
  } catch (const ConfigError& error) {
    mistakes.add(at, fmt::format("{}: {} {}", setting.where, setting.key, error.what()));
  }
}

/// Reads variables of the configuration, short names first so that the full name of a key wins;
/// unknown ones become warnings.
std::vector<Assignment> read_environment(
    const std::vector<std::pair<std::string, std::string>>& variables, size_t source,
    std::vector<std::string>& warnings, Mistakes& mistakes) {
  std::vector<std::pair<std::string, std::string>> known;  // variable, key
  for (const ConfigAlias& alias : config_aliases())
    known.emplace_back(variable_name(alias.flag), alias.key);
  for (const config::ConfigKey& row : config::config_keys())
    known.emplace_back(variable_name(row.name), row.name);

  std::vector<Assignment> found;
  std::map<std::string, std::pair<std::string, std::string>> last;  // by key: variable, text
  for (const auto& [variable, key] : known)
    for (const auto& [name, text] : variables) {
      if (name != variable) continue;
      const auto [other, is_first] = last.try_emplace(key, name, text);
      if (!is_first && other->second.second != text)
        warnings.push_back(fmt::format("{} and {} set the same key: {} = {} holds",
                                       other->second.first, name, key, text));
      read_setting({key, text, name}, source, found, mistakes);
    }

  std::vector<std::string> names = kOtherVariables;
  for (const auto& [variable, key] : known) names.push_back(variable);
  for (const auto& [name, text] : variables) {
    if (std::ranges::find(names, name) != names.end()) continue;
    const std::string gpu = about_gpus(name);
    warnings.push_back(fmt::format("the environment variable {} means nothing{}", name,
                                   gpu.empty() ? did_you_mean(name, names) : ": " + gpu));
  }
  return found;
}

/// Returns what to write instead of a refused word, if that is known; else "".
std::string about_value(const Assignment& assignment) {
  const auto* word = std::get_if<std::string>(&assignment.value);
  return word ? about_word(assignment.row->choices, *word) : "";
}

void apply(const std::vector<Assignment>& source, ResolvedConfig& resolved, Mistakes& mistakes) {
  const auto sets = [&](std::string_view key) {
    return std::ranges::find_if(source, [&](const Assignment& a) { return a.row->name == key; });
  };
  const auto withdraw = [&](std::string_view key, const Assignment& by) {
    const config::ConfigKey& row = *config::find_config_key(key);
    if (!resolved.origins.count(row.name)) return;
    row.set(resolved.config, row.get(config::RunConfig{}));
    resolved.origins[row.name] = fmt::format("withdrawn by {} of {}", by.row->name, by.where);
  };
  for (const auto& [a, b] : kAlternatives) {
    const auto first = sets(a), second = sets(b);
    if (first != source.end() && second == source.end()) withdraw(b, *first);
    if (second != source.end() && first == source.end()) withdraw(a, *second);
  }
  for (const Assignment& assignment : source) {
    try {
      assignment.row->set(resolved.config, assignment.value);
    } catch (const ConfigError& error) {
      mistakes.add(assignment.at, fmt::format("{}: {} {}{}", assignment.where, assignment.row->name,
                                              error.what(), about_value(assignment)));
    }
    resolved.origins[assignment.row->name] = assignment.where;
    if (assignment.row->path != config::PathKind::none)
      resolved.paths[assignment.row->name] = assignment.paths;
  }
}

/// A value that has no effect gives a warning only, since a file may state it for another choice of
/// a flag. Default values give none, wherever they are written: a run's config.toml holds the
/// defaults, too.
void add_idle_keys(ResolvedConfig& resolved) {
  for (const train::IdleKey& idle :
       train::idle_keys(resolved.config, train::tasks_of(resolved.config)))
    if (const auto origin = resolved.origins.find(idle.key->name);
        origin != resolved.origins.end() &&
        idle.key->get(resolved.config) != idle.key->get(config::RunConfig{}))
      resolved.idle.push_back(fmt::format("{}: {}", origin->second, idle.text));
}

/// The settings that were read, weakest first: a step for each file, one for the environment and
/// one for the flags.
struct ReadSources {
  std::vector<std::vector<Assignment>> steps{};
  size_t files = 0;
  std::vector<std::string> warnings{};
  Mistakes mistakes{};
};

ReadSources read_sources(const ConfigSources& sources) {
  ReadSources read;
  if (!sources.file.empty()) FileReader(read.steps, read.mistakes).read(sources.file, "");
  const size_t files = read.files = read.steps.size();
  read.steps.push_back(read_environment(sources.environment, files, read.warnings, read.mistakes));
  read.steps.emplace_back();
  for (const Setting& flag : sources.flags)
    read_setting(flag, files + 1, read.steps.back(), read.mistakes);
  return read;
}

ResolvedConfig merged_config(ReadSources read) {
  ResolvedConfig resolved;
  resolved.warnings = std::move(read.warnings);
  for (size_t i = 0; i < read.steps.size(); ++i) {
    if (i == read.files) resolved.log_level_of_files = resolved.config.run.log_level;
    apply(read.steps[i], resolved, read.mistakes);
  }
  read.mistakes.throw_if_any();
  place_data_files(resolved);
  if (!resolved.config.model.layer.empty() && !resolved.origins.contains("model.name")) {
    resolved.config.model.name = "layers";
    resolved.origins["model.name"] = "[[model.layer]]";
  }
  return resolved;
}

/// Names the cause of a broken relation between keys: the flag or variable without which it would
/// hold, else the file. Nothing is read again: a file may be a pipe.
std::string cause_of(const ReadSources& read, const std::string& file) {
  for (const size_t step : {read.files + 1, read.files})
    for (size_t i = 0; i < read.steps[step].size(); ++i) {
      ReadSources fewer = read;
      fewer.steps[step].erase(fewer.steps[step].begin() + static_cast<std::ptrdiff_t>(i));
      try {
        train::validate(merged_config(std::move(fewer)).config);
        return read.steps[step][i].where;
      } catch (const ConfigError&) {  // this setting's error, or still the common one
      }
    }
  return file;
}

}  // namespace

ResolvedConfig read_config(const ConfigSources& sources) {
  const ReadSources read = read_sources(sources);
  ResolvedConfig resolved = merged_config(read);
  try {
    train::validate(resolved.config);
  } catch (const ConfigError& error) {
    const std::string cause = cause_of(read, sources.file);
    throw ConfigError(cause.empty() ? error.what() : fmt::format("{}: {}", cause, error.what()));
  }
  add_idle_keys(resolved);
  return resolved;
}

std::vector<std::string> ResolvedConfig::warnings_of_training() const {
  std::vector<std::string> all = warnings;
  all.insert(all.end(), idle.begin(), idle.end());
  return all;
}

const std::vector<ConfigAlias>& config_aliases() {
  static const std::vector<ConfigAlias> aliases = {
      {"data-dir", "data.dir"},       {"output-dir", "run.output_dir"},
      {"batch-size", "batch.local"},  {"global-batch-size", "batch.global"},
      {"epochs", "run.epochs"},       {"max-steps", "run.max_steps"},
      {"lr", "optimizer.lr"},         {"seed", "run.seed"},
      {"precision", "run.precision"}, {"device", "run.device"},
      {"target", "run.target"},       {"threads", "run.threads"},
      {"replicas", "run.replicas"},   {"spatial", "parallel.spatial"},
      {"tensor", "parallel.tensor"},  {"sync", "sync.scheme"},
      {"machine", "replay.machine"},  {"resume", "checkpoint.resume"},
      {"profile", "run.profile"},     {"check-collectives", "comm.check"},
      {"slow", "run.slow"},           {"slow-sigma", "run.slow_sigma"},
      {"log-level", "run.log_level"}};
  return aliases;
}

std::string variable_name(std::string_view name) {
  std::string variable(kPrefix);
  for (const char c : name)
    variable +=
        c == '.' || c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return variable;
}

comm::Launcher read_launcher() {
  return comm::detect_launcher([](const char* name) { return std::getenv(name); });
}

std::vector<std::pair<std::string, std::string>> tutti_environment() {
  std::vector<std::pair<std::string, std::string>> found;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (text.starts_with(kPrefix) && equals != std::string_view::npos)
      found.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return found;
}

}  // namespace tutti::cli
