#include "tutti/mlsl/settings.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "tutti/base/number.h"
#include "tutti/mlsl/types.h"

namespace tutti::mlsl {
namespace {

// Of endpoint servers, their placement and their network, which do not exist here; of copies and
// groups, which are made otherwise.
constexpr std::array kIgnored = {
    "MLSL_NUM_SERVERS",    "MLSL_SERVER_AFFINITY",    "MLSL_SERVER_CREATION_TYPE",
    "MLSL_SERVER_PREFIX",  "MLSL_DYNAMIC_SERVER",     "MLSL_HOSTNAME",
    "MLSL_HOSTNAME_TYPE",  "MLSL_IFACE_NAME",         "MLSL_IFACE_IDX",
    "MLSL_DUP_GROUP",      "MLSL_AUTO_CONFIG_TYPE",   "MLSL_THP_THRESHOLD_MB",
    "MLSL_CHECK_MEM_SIZE", "MLSL_MAX_SHORT_MSG_SIZE", "MLSL_USE_COPY_THREADS",
    "MLSL_COPY_THREADS",   "MLSL_COPY_THRESHOLD",     "MLSL_CHECK_SINGLE_NODE",
    "MLSL_ALLTOALL_SPLIT", "MLSL_ALLTOALLV_SPLIT",    "MLSL_MPI_VERSION_CHECK"};

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

}  // namespace

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
  settings.timeout = read<double>(variables, "MLSL_TIMEOUT", 1, 1e9).value_or(settings.timeout);
  for (const char* name : kIgnored)
    if (variables(name) != nullptr) settings.ignored.emplace_back(name);
  return settings;
}

}  // namespace tutti::mlsl
