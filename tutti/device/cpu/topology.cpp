#include "tutti/device/cpu/topology.h"

#include <fmt/format.h>
#include <hwloc.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/device/cpu/control_group.h"

namespace tutti::device {
namespace {

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using TopologyHandle = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, DestroyTopology>;
struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<std::remove_pointer_t<hwloc_bitmap_t>, FreeBitmap>;

TopologyHandle load() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0)
    throw DeviceError("hwloc cannot start: hwloc_topology_init failed");
  TopologyHandle topology(raw);
  if (hwloc_topology_load(raw) != 0)
    throw DeviceError("hwloc cannot read this machine: hwloc_topology_load failed, see lstopo");
  return topology;
}

Bitmap binding(hwloc_topology_t topology) {
  Bitmap mask(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(topology, mask.get(), HWLOC_CPUBIND_THREAD) !=
      0)  // not supported: nothing is bound
    hwloc_bitmap_copy(mask.get(), hwloc_topology_get_allowed_cpuset(topology));
  return mask;
}

std::string read_text(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The processors given to limit_teams().
std::vector<int>& of_teams() {
  static std::vector<int> processors;
  return processors;
}

int at_least_one(int count) { return std::max(1, count); }

}  // namespace

int Topology::usable_cores() const {
  if (cpu_quota <= 0) return cores;
  return std::clamp(static_cast<int>(std::ceil(cpu_quota - 0.01)), 1, cores);
}

void limit_teams(std::vector<int> processors) { of_teams() = std::move(processors); }

int64_t parse_meminfo(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(key + ":")) return std::stoll(line.substr(key.size() + 1)) * 1024;
  return 0;
}

Topology read_topology() {
  const TopologyHandle handle = load();
  hwloc_topology_t const topology = handle.get();
  Topology out;
  const auto count = [&](hwloc_obj_type_t type) {
    return at_least_one(hwloc_get_nbobjs_by_type(topology, type));
  };
  out.sockets = count(HWLOC_OBJ_PACKAGE);
  out.numa_nodes = count(HWLOC_OBJ_NUMANODE);
  out.cores = count(HWLOC_OBJ_CORE);
  out.hardware_threads = count(HWLOC_OBJ_PU);
  const Bitmap bound = binding(topology);
  const Bitmap of_core(hwloc_bitmap_alloc()), teams(hwloc_bitmap_alloc());
  for (const int processor : of_teams())
    hwloc_bitmap_set(teams.get(), static_cast<unsigned>(processor));
  for (hwloc_obj_t core = nullptr;
       (core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core));) {
    hwloc_bitmap_and(of_core.get(), core->cpuset, bound.get());
    if (hwloc_bitmap_iszero(of_core.get())) continue;
    out.bound_processors.push_back(hwloc_bitmap_first(of_core.get()));
    out.team_cores += hwloc_bitmap_intersects(of_core.get(), teams.get());
  }
  std::ranges::sort(out.bound_processors);
  out.bound_cores = at_least_one(static_cast<int>(out.bound_processors.size()));
  constexpr hwloc_obj_type_t kCaches[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE,
                                          HWLOC_OBJ_L4CACHE};
  for (int level = 1; level <= 4; ++level)
    if (hwloc_obj_t cache = hwloc_get_obj_by_type(topology, kCaches[level - 1], 0))
      out.caches.push_back({level, static_cast<int64_t>(cache->attr->cache.size),
                            hwloc_get_nbobjs_by_type(topology, kCaches[level - 1])});
  if (hwloc_obj_t socket = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0))
    if (const char* model = hwloc_obj_get_info_by_name(socket, "CPUModel")) out.cpu_model = model;

  const std::string meminfo = read_text("/proc/meminfo");
  out.memory_bytes = parse_meminfo(meminfo, "MemTotal");
  out.available_bytes = parse_meminfo(meminfo, "MemAvailable");
  const GroupLimits limits = read_group_limits();
  out.cpu_quota = limits.processors;
  if (limits.memory_bytes > 0 && limits.memory_bytes < out.memory_bytes) {
    out.memory_bytes = limits.memory_bytes;
    out.available_bytes = std::min(out.available_bytes, limits.memory_left);
  }
  return out;
}

void bind_thread(pthread_t thread, int processor) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(static_cast<size_t>(processor), &mask);
  if (const int code = pthread_setaffinity_np(thread, sizeof mask, &mask); code != 0)
    throw DeviceError(
        fmt::format("cannot bind a thread to processor {}: {}", processor, std::strerror(code)));
}

std::string affinity_list() {
  const TopologyHandle topology = load();
  const Bitmap bound = binding(topology.get());
  char* text = nullptr;
  if (hwloc_bitmap_list_asprintf(&text, bound.get()) < 0)
    throw DeviceError("hwloc cannot print an affinity mask");
  const std::unique_ptr<char, decltype(&std::free)> owner(text, std::free);
  return text;
}

}  // namespace tutti::device
