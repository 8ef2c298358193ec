#include "tutti/cli/config/config_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tutti/base/json.h"
#include "tutti/cli/config/config_paths.h"
#include "tutti/models/block/layers.h"
#include "tutti/train/settings/goal.h"
#include "tutti/train/settings/idle_keys.h"

namespace tutti::cli {
namespace {

constexpr std::string_view kIntroduction = R"(# Configuration

<!-- Written by `tutti config --doc` from the table in tutti/config/*_section.h. -->

A run is configured by a TOML file, the environment and flags. Each source overrides the one before it:

1. the built-in default,
2. the file: `tutti train run.toml`. `include = "other.toml"` (or a list) reads other files first, relative to this one,
3. the environment: every key has a variable, `optimizer.lr` is `TUTTI_OPTIMIZER_LR`,
4. flags: `--set optimizer.lr=0.1`, the same as `--optimizer.lr=0.1`, and the short flags below.

In variables and flags strings need no quotes and lists no brackets: `--set optimizer.exclude=bias,norm`. Numbers of bytes and
seconds take a suffix in quotes or on the command line: `"4 MiB"`, `--set comm.timeout_s=5min`. 

A relative path of what a run reads starts at the folder of the file that sets the key, an included file too; files of data start at
`data.dir`; what a run writes starts at the working folder ([below](#paths)). In a variable or a flag every relative path starts at the working
folder. The `config.toml` that a run writes beside its results has whole paths of what is read, and an empty `run.output_dir`. For this file,
empty means the folder that the file lies in. In a file, `$NAME` and `${NAME}` are replaced in keys of one path as a shell does, and `$$` is the
sign itself: `dir = "$SCRATCH/mnist"`; variables and flags, which a shell has read, are taken as they are. A leading `~` is the home folder in all
of them.

An unknown key, a wrong type and a value out of range are errors that name file, line, column and the nearest valid key, all of them at
once; an unknown variable `TUTTI_*` gives a warning, and so does
a key that has no effect because of another, as momentum beside adamw: the tables below say what such keys are only for. `tutti config run.toml` prints the resolved configuration with the origin of each value, and
every run writes it beside its results as `config.toml`. `tutti config --schema` prints a JSON schema for editors.

`batch.local` and `batch.global` are two ways of saying one thing, as are `schedule.warmup_epochs` and `schedule.warmup_steps`:
if two sources give one each, only the one from the stronger source counts.

)";

/// Returns "0 to 1", ">= 0", "`sgd`, `lars`", in the documentation's words.
std::string allowed(const config::ConfigKey& row) {
  if (!row.choices.empty()) return fmt::format("`{}`", fmt::join(row.choices, "`, `"));
  if (row.least && row.greatest) return fmt::format("{} to {}", *row.least, *row.greatest);
  if (row.least) return fmt::format("at least {}", *row.least);
  return "";
}

/// Returns "data.cache" for data.cache.memory.
std::string_view group_of(const config::ConfigKey& row) {
  return std::string_view(row.name).substr(0, row.name.rfind('.'));
}

/// Writes a section of the documentation that lists the keys of one kind.
std::string key_list(std::string_view title, std::string_view text,
                     bool (*listed)(const config::ConfigKey&)) {
  std::vector<std::string> names;
  for (const config::ConfigKey& row : config::config_keys())
    if (listed(row)) names.push_back(fmt::format("`{}`", row.name));
  return fmt::format("\n## {}\n\n{}\n\n{}.\n", title, text, fmt::join(names, ", "));
}

Json layer_schema() {
  Json schema = {{"type", "object"}, {"additionalProperties", false}, {"required", {"type"}}};
  for (const models::LayerKey& key : models::layer_keys()) {
    Json& s = schema["properties"][key.name];
    s["description"] = key.help;
    switch (key.kind) {
      case models::LayerKeyKind::count: s["type"] = "integer"; break;
      case models::LayerKeyKind::extents: s["type"] = {"integer", "array"}; break;
      case models::LayerKeyKind::real: s["type"] = "number"; break;
      case models::LayerKeyKind::flag: s["type"] = "boolean"; break;
      case models::LayerKeyKind::texts: s["type"] = {"string", "array"}; break;
      default: s["type"] = "string";
    }
    if (!key.words.empty()) s["enum"] = key.words;
  }
  for (const models::LayerType& type : models::layer_types())
    schema["properties"]["type"]["enum"].push_back(type.name);
  return schema;
}

/// An origin may name a file by any bytes; TOML needs text on one line, in comments too.
std::string comment(const std::string& origin) {
  std::string text = as_utf8(origin);
  for (char& c : text)
    if ((c >= 0 && c < 0x20) || c == 0x7f) c = '?';
  return text;
}

std::string layer_section() {
  std::string out = R"(
## [[model.layer]]

A network of one's own, without compiling: a table for each layer, from input to prediction, in one to three dimensions as the input
has. `examples/layers_lattices.toml` is one. A layer reads the one before it, or those that `input` names: skip connections are `add` and `concat`. A number for
`kernel`, `stride`, `pad` or `dilation` holds for all dimensions; a list has one for each. Errors of shapes name the layer and its line. No key is needed
that does not say so.

| type | keys besides those of every layer | what it does |
|---|---|---|
)";
  for (const models::LayerType& type : models::layer_types()) {
    const std::string keys =
        type.keys.empty() ? "" : fmt::format("`{}`", fmt::join(type.keys, "`, `"));
    out += fmt::format("| `{}` | {} | {} |\n", type.name, keys, type.help);
  }
  out += "\n| key | allowed | meaning |\n|---|---|---|\n";
  for (const models::LayerKey& key : models::layer_keys()) {
    const std::string words =
        key.words.empty() ? "" : fmt::format("`{}`", fmt::join(key.words, "`, `"));
    out += fmt::format("| `{}` | {} | {} |\n", key.name, words, key.help);
  }
  return out;
}

/// Writes one key a line under a header, which names the place where they were written.
std::string layer_tables(const std::vector<models::LayerTable>& layers) {
  std::string out;
  for (const models::LayerTable& layer : layers) {
    out += fmt::format("\n[[model.layer]]{}\n",
                       layer.where.empty() ? "" : "  # " + comment(layer.where));
    for (const auto& [key, value] : layer.entries)
      out += fmt::format("{} = {}\n", key, config::toml_of_layer(value));
  }
  return out;
}

Json json_of(const config::ConfigValue& value) {
  const auto* layers = std::get_if<std::vector<models::LayerTable>>(&value);
  if (!layers) return parse_json(config::to_toml(value));  // TOML values of these types are JSON
  Json out = Json::array();
  for (const models::LayerTable& layer : *layers) {
    Json& table = out.emplace_back(Json::object());
    for (const auto& [key, entry] : layer.entries)
      table[key] = parse_json(config::toml_of_layer(entry));
  }
  return out;
}

}  // namespace

std::string resolved_toml(const ResolvedConfig& resolved) {
  constexpr size_t kCommentColumn = 44;
  const std::vector<train::IdleKey> idle =
      train::idle_keys(resolved.config, train::tasks_of(resolved.config));
  std::string out =
      "# The resolved configuration of a run; the comment after a value says where it came from.\n";
  for (const config::ConfigGroup& group : config::config_groups()) {
    out += fmt::format("\n[{}]\n", group.name);
    std::string tables;  // after all keys of the section
    for (const config::ConfigKey& row : config::config_keys()) {
      if (group_of(row) != group.name) continue;
      const config::ConfigValue value = row.get(resolved.config);
      if (const auto* layers = std::get_if<std::vector<models::LayerTable>>(&value);
          layers && !layers->empty()) {
        tables += layer_tables(*layers);
        continue;
      }
      const auto* path = std::get_if<std::string>(&value);
      const std::string line = fmt::format(
          "{} = {}", row.name.substr(group.name.size() + 1),
          config::to_toml(path && row.path != config::PathKind::none ? path_in_file(*path)
                                                                     : value));
      if (const auto unused = std::ranges::find(idle, &row, &train::IdleKey::key);
          unused != idle.end() && value == row.get(config::RunConfig{})) {
        out += fmt::format("{:<{}}  # only with {}\n", "# " + line, kCommentColumn,
                           config::words_of(row.only_with));
        continue;
      }
      const auto origin = resolved.origins.find(row.name);
      out += fmt::format("{:<{}}  # {}\n", line, kCommentColumn,
                         origin == resolved.origins.end() ? "default" : comment(origin->second));
    }
    out += tables;
  }
  return out;
}

std::string resolved_json(const ResolvedConfig& resolved) {
  Json out;
  for (const config::ConfigKey& row : config::config_keys()) {
    const auto origin = resolved.origins.find(row.name);
    out[row.name] = {{"value", json_of(row.get(resolved.config))},
                     {"origin", origin == resolved.origins.end() ? "default" : origin->second}};
  }
  return print_json(out, 2) + "\n";
}

std::string configuration_markdown() {
  std::string out(kIntroduction);
  out += "## Short flags\n\n| flag | key | variable |\n|---|---|---|\n";
  for (const ConfigAlias& alias : config_aliases())
    out +=
        fmt::format("| `--{}` | `{}` | `{}` |\n", alias.flag, alias.key, variable_name(alias.flag));
  out +=
      "\nA verb takes those that mean something to it: `tutti help VERB`. `-v` is `--log-level "
      "debug`, `-vv` is `trace`, `-q` is `warn`; `--resume` alone is `--resume latest`.\n";
  for (const config::ConfigGroup& group : config::config_groups()) {
    out += fmt::format(
        "\n## [{}]\n\n{}\n\n| key | type | default | allowed | meaning |\n|---|---|---|---|---|\n",
        group.name, group.help);
    for (const config::ConfigKey& row : config::config_keys()) {
      if (group_of(row) != group.name) continue;
      const std::string unit = row.or_count       ? " or an integer"
                               : row.unit.empty() ? ""
                                                  : fmt::format(" ({})", row.unit);
      out += fmt::format("| `{}` | {}{}{} | `{}` | {} | {} |\n", row.name,
                         row.or_one ? "a string or " : "", to_string(row.type), unit,
                         config::to_toml(row.get(config::RunConfig{})), allowed(row), row.help);
    }
  }
  out += layer_section();
  const auto paths_of = [](config::PathKind kind) {
    std::vector<std::string> names;
    for (const config::ConfigKey& row : config::config_keys())
      if (row.path == kind) names.push_back(fmt::format("`{}`", row.name));
    return fmt::format("{}", fmt::join(names, ", "));
  };
  out += fmt::format(
      "\n## Paths\n\n| a relative path in a file starts at | keys |\n|---|---|\n| the folder of "
      "that file: what is read | {} |\n| `data.dir`, or where that is empty the folder of that "
      "file | {} |\n| the working folder: what is written | {} |\n",
      paths_of(config::PathKind::read), paths_of(config::PathKind::data),
      paths_of(config::PathKind::written));
  out += key_list(
      "On a resume",
      "These keys may have other values than the run that `--resume` continues. Any other change "
      "needs `--resume-anyway KEY`; see\n[runs.md](runs.md).",
      [](const config::ConfigKey& row) { return row.on_resume != config::OnResume::fixed; });
  out += key_list(
      "Among ranks",
      "All ranks of a job must be given the same configuration, or the job ends before its first "
      "step with the first key that\ndiffers. Only these keys may differ, because they name what a "
      "node has of its own.",
      [](const config::ConfigKey& row) {
        return row.among_ranks == config::AmongRanks::may_differ;
      });
  return out;
}

std::string configuration_schema() {
  const auto scalar = [](const config::ConfigKey& row) {
    Json s;
    switch (row.type) {
      case config::ConfigType::boolean: s["type"] = "boolean"; break;
      case config::ConfigType::integer:
      case config::ConfigType::integers: s["type"] = "integer"; break;
      case config::ConfigType::real:
      case config::ConfigType::reals: s["type"] = "number"; break;
      default: s["type"] = "string";
    }
    if (!row.unit.empty()) s["type"] = Json::array({s["type"], "string"});
    if (row.or_count) s["type"] = Json::array({"string", "integer"});
    if (!row.choices.empty()) s["enum"] = row.choices;
    if (row.least) s["minimum"] = *row.least;
    if (row.greatest) s["maximum"] = *row.greatest;
    return s;
  };
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", "Tutti run"},
                 {"type", "object"},
                 {"additionalProperties", false}};
  schema["properties"]["include"] = {{"description", "Files read before this one, relative to it"},
                                     {"type", {"string", "array"}},
                                     {"items", {{"type", "string"}}}};
  // An outer group comes before the groups in it.
  const auto properties_of = [&](std::string_view group) -> Json& {
    Json* properties = &schema["properties"];
    for (size_t at = 0, dot = 0; dot != group.npos; at = dot + 1) {
      dot = group.find('.', at);
      properties = &(*properties)[std::string(group.substr(at, dot - at))]["properties"];
    }
    return *properties;
  };
  for (const config::ConfigGroup& group : config::config_groups()) {
    const size_t dot = group.name.rfind('.');
    Json& outer = dot == group.name.npos
                      ? schema["properties"]
                      : properties_of(std::string_view(group.name).substr(0, dot));
    outer[group.name.substr(dot + 1)] = {
        {"type", "object"}, {"additionalProperties", false}, {"description", group.help}};
  }
  for (const config::ConfigKey& row : config::config_keys()) {
    Json value = scalar(row);
    if (row.type == config::ConfigType::layers) value = layer_schema();
    if (row.type >= config::ConfigType::integers) value = {{"type", "array"}, {"items", value}};
    if (row.or_one) value["type"] = Json::array({"string", "array"});
    value["description"] = row.help;
    value["default"] = json_of(row.get(config::RunConfig{}));
    properties_of(group_of(row))[row.name.substr(group_of(row).size() + 1)] = value;
  }
  return print_json(schema, 2) + "\n";
}

}  // namespace tutti::cli
