#include "tutti/cli/job/machine_file.h"

#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/numeric/hash.h"
#include "tutti/cli/config/config_paths.h"
#include "tutti/data/file/text_file.h"

namespace tutti::cli {
namespace {

/// A table of the file: reads its numbers, and checks that it holds nothing else.
class MachineTable {
 public:
  MachineTable(const std::string& file, const toml::table& table, std::string name,
               std::vector<std::string_view> keys)
      : file_(file), table_(table), name_(std::move(name)) {
    for (const auto& [key, node] : table)
      if (std::ranges::find(keys, key.str()) == keys.end())
        refuse(node, fmt::format("'{}' is no key of {}: expected {}", key.str(), name_,
                                 fmt::join(keys, ", ")));
  }

  [[noreturn]] void refuse(const toml::node& node, const std::string& what) const {
    throw ConfigError(fmt::format("{}:{}: {}", file_, node.source().begin.line, what));
  }

  bool has(std::string_view key) const { return table_.contains(key); }
  bool is(std::string_view key, std::string_view word) const {
    return table_[key].value<std::string_view>() == word;
  }
  /// `otherwise`: default of an optional key; below 0: the key is required.
  double number(std::string_view key, double least, double otherwise = -1) const {
    const toml::node* node = table_.get(key);
    if (!node) {
      if (otherwise < 0) throw ConfigError(fmt::format("{}: {} needs '{}'", file_, name_, key));
      return otherwise;
    }
    const auto value = node->value<double>();
    if (!value || !node->is_number())
      refuse(*node, fmt::format("{}.{} must be a number", name_, key));
    if (!(*value >= least))
      refuse(*node, fmt::format("{}.{} must be at least {}, is {}", name_, key, least, *value));
    if (!std::isfinite(*value)) refuse(*node, fmt::format("{}.{} must be finite", name_, key));
    return *value;
  }
  int whole(std::string_view key, int least, int otherwise) const {
    constexpr double kMost = 1 << 24;
    const double value = number(key, least, otherwise);
    if (value > kMost || value != std::floor(value))
      refuse(*table_.get(key),
             fmt::format("{}.{} must be a whole number up to {}, is {}", name_, key, kMost, value));
    return static_cast<int>(value);
  }
  comm::LinkCost link(std::string_view key) const {
    const toml::node* node = table_.get(key);
    if (!node || !node->is_table())
      throw ConfigError(fmt::format("{}: a machine needs the table [{}]", file_, key));
    const MachineTable link(file_, *node->as_table(), std::string(key),
                            {"latency_us", "gbit_per_s"});
    return {link.number("latency_us", 0) * 1e-6, 8e-9 / link.number("gbit_per_s", 1e-6)};
  }

 private:
  const std::string& file_;
  const toml::table& table_;
  const std::string name_;
};

MachineTable sub_table(const std::string& file, const toml::table& root, std::string_view key,
                       std::vector<std::string_view> keys) {
  static const toml::table none;
  const toml::node* node = root.get(key);
  if (node && !node->is_table())
    throw ConfigError(fmt::format("{}: '{}' must be a table", file, key));
  return {file, node ? *node->as_table() : none, std::string(key), std::move(keys)};
}

void read_slow(const std::string& file, const toml::table& root, comm::Machine& machine) {
  const toml::node* node = root.get("slow");
  if (!node) return;
  const toml::array* list = node->as_array();
  if (!list) throw ConfigError(fmt::format("{}: 'slow' must be a list of tables", file));
  for (const toml::node& entry : *list) {
    if (!entry.is_table())
      throw ConfigError(fmt::format("{}: 'slow' must be a list of tables", file));
    const MachineTable table(file, *entry.as_table(), "slow", {"device", "factor"});
    const comm::Machine::Slow slow{.device = table.whole("device", 0, -1),
                                   .factor = table.number("factor", 1e-6)};
    if (std::ranges::any_of(machine.slow,
                            [&](const auto& known) { return known.device == slow.device; }))
      table.refuse(entry, fmt::format("'slow' names device {} twice", slow.device));
    machine.slow.push_back(slow);
  }
}

}  // namespace

comm::Machine read_machine(const std::filesystem::path& path) {
  require_path("replay.machine", path.string());
  if (!std::filesystem::is_regular_file(path))
    throw ConfigError(
        fmt::format("{}: no file that describes a machine lies there", path.string()));
  const auto found = data::read_small_text(path, {.expected = "a description of a machine"});
  if (!found)
    throw IoError(fmt::format("{}: this description of a machine cannot be read", path.string()));
  const std::string& text = *found;
  const std::string file = path.string();
  toml::table root;
  try {
    root = toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    throw ConfigError(fmt::format("{}:{}: {}", file, error.source().begin.line,
                                  std::string(error.description())));
  }
  comm::Machine machine;
  const MachineTable all(file, root, "the machine",
                         {"name", "device", "inside", "between", "topology", "stragglers", "slow"});
  machine.name = root["name"].value_or(path.stem().string());
  machine.content = fnv1a(text);
  const auto device = sub_table(file, root, "device", {"per_node", "tflops", "step_seconds"});
  machine.devices_per_node = device.whole("per_node", 1, 1);
  machine.device_flops = device.number("tflops", 0, 0) * 1e12;
  machine.measured = device.is("step_seconds", "measured");
  if (!machine.measured) machine.step_seconds = device.number("step_seconds", 0, 0);
  if ((machine.device_flops > 0) + (machine.step_seconds > 0) + machine.measured != 1)
    throw ConfigError(
        fmt::format("{}: [device] has either tflops, which a device reaches in training, or "
                    "step_seconds, a number or \"measured\": as long as here",
                    file));
  machine.inside = machine.devices_per_node > 1 ? all.link("inside") : comm::LinkCost{};
  machine.between = all.link("between");
  const auto topology = sub_table(file, root, "topology", {"nodes_per_switch", "oversubscription"});
  if (topology.has("nodes_per_switch"))
    machine.nodes_per_switch = topology.whole("nodes_per_switch", 1, 1);
  machine.oversubscription = topology.number("oversubscription", 1, 1);
  if (machine.oversubscription > 1 && machine.nodes_per_switch == 0)
    throw ConfigError(fmt::format(
        "{}: topology.oversubscription needs topology.nodes_per_switch: beyond them it is felt",
        file));
  constexpr double kMostSigma = 2;
  machine.sigma = sub_table(file, root, "stragglers", {"sigma"}).number("sigma", 0, 0);
  if (machine.sigma > kMostSigma)
    throw ConfigError(fmt::format("{}: stragglers.sigma must be at most {}, is {}", file,
                                  kMostSigma, machine.sigma));
  read_slow(file, root, machine);
  return machine;
}

}  // namespace tutti::cli
