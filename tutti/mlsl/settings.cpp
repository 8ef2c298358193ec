#include "tutti/mlsl/settings.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "tutti/base/number.h"
#include "tutti/comm/run/progress.h"
#include "tutti/mlsl/types.h"

namespace tutti::mlsl {
namespace {

// Variables of server processes and their network, which do not exist here, and of copies and
// groups, which are made in another way.
constexpr std::array kIgnored = {"MLSL_SERVER_CREATION_TYPE",
                                 "MLSL_SERVER_PREFIX",
                                 "MLSL_DYNAMIC_SERVER",
                                 "MLSL_HOSTNAME",
                                 "MLSL_HOSTNAME_TYPE",
                                 "MLSL_IFACE_NAME",
                                 "MLSL_IFACE_IDX",
                                 "MLSL_DUP_GROUP",
                                 "MLSL_AUTO_CONFIG_TYPE",
                                 "MLSL_THP_THRESHOLD_MB",
                                 "MLSL_CHECK_MEM_SIZE",
                                 "MLSL_MAX_SHORT_MSG_SIZE",
                                 "MLSL_USE_COPY_THREADS",
                                 "MLSL_COPY_THREADS",
                                 "MLSL_COPY_THRESHOLD",
                                 "MLSL_CHECK_SINGLE_NODE",
                                 "MLSL_ALLTOALL_SPLIT",
                                 "MLSL_ALLTOALLV_SPLIT",
                                 "MLSL_MPI_VERSION_CHECK"};

template <class Number>
std::optional<Number> read(const comm::Environment& variables, const char* name, Number least,
                           Number most) {
  const char* const text = variables(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  Number value{};
  demand(read_number(text, value) && value >= least && value <= most,
         "{}={} is not a number between {} and {}", name, text, least, most);
  return value;
}

std::vector<int> read_cores(const comm::Environment& variables) {
  constexpr const char* kName = "MLSL_SERVER_AFFINITY";
  std::vector<int> cores;
  const char* const text = variables(kName);
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const bool last = comma == rest.size();
    int core = -1;
    demand(
        read_number(rest.substr(0, comma), core) && core >= 0 && (last || comma + 1 < rest.size()),
        "{}={} is not a list of cores such as 14,15", kName, text);
    cores.push_back(core);
    rest.remove_prefix(last ? comma : comma + 1);
  }
  return cores;
}

}  // namespace

std::vector<int> cores_of_servers(const Settings& settings, int local_rank) {
  const std::vector<int>& listed = settings.server_cores;
  const auto servers = static_cast<size_t>(settings.servers);
  if (listed.empty()) return std::vector<int>(servers, comm::Progress::kNoCore);
  std::vector<int> cores;
  for (size_t s = 0; s < servers; ++s)
    cores.push_back(listed[(static_cast<size_t>(local_rank) * servers + s) % listed.size()]);
  return cores;
}

void check_heap(size_t heap_bytes, int ranks, int64_t available_bytes) {
  const auto gib = [](double bytes) { return bytes / static_cast<double>(size_t{1} << 30); };
  const double wanted = static_cast<double>(heap_bytes) * ranks;
  const double room = std::max(0.0, static_cast<double>(available_bytes));
  demand(
      wanted <= room,
      "MLSL_HEAP_SIZE_GB: {} ranks of this node ask for {:.3g} GiB each, and {:.3g} GiB of memory "
      "are free; set it to less than {:.3g}, because what the heap has no room for comes from "
      "ordinary memory",
      ranks, gib(static_cast<double>(heap_bytes)), gib(room), gib(room) / ranks);
}

Settings read_settings(const comm::Environment& variables) {
  constexpr size_t kAny = size_t{1} << 40;
  Settings settings;
  constexpr std::array kLevels = {log::Level::warn, log::Level::info, log::Level::debug,
                                  log::Level::trace};
  settings.log_level = kLevels[read<size_t>(variables, "MLSL_LOG_LEVEL", 0, 3).value_or(0)];
  settings.statistics = read<int>(variables, "MLSL_STATS", 0, 1).value_or(0) == 1;
  const int mode = read<int>(variables, "MLSL_MSG_PRIORITY_MODE", 0, 1).value_or(1);
  settings.newest_first =
      read<int>(variables, "MLSL_MSG_PRIORITY", 0, 1).value_or(0) == 1 && mode == 1;
  settings.priority_threshold = read<size_t>(variables, "MLSL_MSG_PRIORITY_THRESHOLD", 0, kAny)
                                    .value_or(settings.priority_threshold);
  if (const auto mebibytes = read<size_t>(variables, "MLSL_LARGE_MSG_SIZE_MB", 1, kAny >> 20))
    settings.large_bytes = *mebibytes << 20;
  settings.large_chunks =
      read<size_t>(variables, "MLSL_LARGE_MSG_CHUNKS", 1, 1 << 16).value_or(settings.large_chunks);
  if (const auto gibibytes = read<double>(variables, "MLSL_HEAP_SIZE_GB", 0, 4096))
    settings.heap_bytes = static_cast<size_t>(*gibibytes * static_cast<double>(size_t{1} << 30));
  constexpr int kMostServers = 16;
  settings.servers = read<int>(variables, "MLSL_NUM_SERVERS", 0, kMostServers).value_or(0);
  settings.server_cores = read_cores(variables);
  settings.timeout = read<double>(variables, "MLSL_TIMEOUT", 1, 1e9).value_or(settings.timeout);
  for (const char* name : kIgnored)
    if (variables(name) != nullptr) settings.ignored.emplace_back(name);
  if (settings.servers == 0 && !settings.server_cores.empty())
    settings.ignored.emplace_back("MLSL_SERVER_AFFINITY (there are no servers)");
  return settings;
}

}  // namespace tutti::mlsl
