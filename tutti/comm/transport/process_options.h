#pragma once
// The options of a communicator of processes.

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti::comm {

/// Says which ranks are on one node: those under one running kernel (they can share memory), or
/// only the ranks among them that also have the same host name. The second makes nodes of
/// containers, or of network namespaces, of one machine.
enum class Nodes : uint8_t { kernel, hostname };
/// Converts "auto" (kernel) or "hostname". Throws ConfigError.
Nodes nodes_named(std::string_view name);

/// Says how ranks of a job that MPI started send messages where they do not share memory: by MPI,
/// or over this library's own TCP connections. `automatic` takes TCP where the ranks are on several
/// hosts and MPI itself would use TCP between them (comm/transport/mpi/wire_choice.h).
enum class WireKind : uint8_t { automatic, mpi, tcp };
/// Converts "auto", "mpi" or "tcp". Throws ConfigError.
WireKind wire_named(std::string_view name);

struct ProcessOptions {
  bool shared_memory = true;  ///< among neighbours; false sends everything over the wire
  double timeout = 60;        ///< seconds; applies to every wait
  Nodes nodes = Nodes::kernel;
  WireKind wire = WireKind::automatic;  ///< has no effect without MPI
  /// The only address to listen on for connections of other ranks, as for comm::own_address().
  /// Empty: all addresses of this host, which the others try one after another.
  std::string address = {};
};

}  // namespace tutti::comm
