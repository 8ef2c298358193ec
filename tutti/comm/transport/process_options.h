#pragma once
// What a communicator of processes is told by its caller.

#include <cstdint>
#include <string_view>

namespace tutti::comm {

/// Which ranks are on one node: those under one running kernel (they can share memory), or of these
/// only those that also have the same host name. The second makes nodes of containers, or of
/// network namespaces, of one machine.
enum class Nodes : uint8_t { kernel, hostname };
/// "auto" (kernel) or "hostname". Throws ConfigError.
Nodes nodes_named(std::string_view name);

struct ProcessOptions {
  bool shared_memory = true;  ///< among the ranks of a node that see each other's memory; false
                              ///< sends everything over the wire
  double timeout = 60;        ///< seconds; of every wait
  Nodes nodes = Nodes::kernel;
};

}  // namespace tutti::comm
