#include "tutti/cli/peers/peer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

#include "tutti/base/error.h"
#include "tutti/cli/peers/native_mpi.h"

namespace tutti::cli {
namespace {

const std::array<const PeerKind*, 4> kKinds{&memcpy_peer, &mpi_peer, &gloo_peer, &oneccl_peer};

// All ranks copy the whole vector at once: the limit of the memory.
class MemcpyPeer final : public Peer {
 public:
  std::function<void()> collective(const comm::Task& task, comm::Element element, comm::ReduceOp,
                                   std::byte* input, std::byte* output) override {
    const size_t bytes = task.count * comm::size_of(element);
    return [=] { std::memcpy(output, input, bytes); };
  }
  bool answers() const override { return false; }
};

// The MPI library that this program runs on.
class MpiPeer final : public Peer {
 public:
  std::function<void()> collective(const comm::Task& task, comm::Element element, comm::ReduceOp op,
                                   std::byte* input, std::byte* output) override {
    return native_collective(task, element, op, input, output);
  }
};

template <class P>
std::unique_ptr<Peer> open(comm::Communicator&) {
  return std::make_unique<P>();
}

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

const PeerKind memcpy_peer{
    .name = "memcpy", .absent = {}, .processes = false, .open = open<MemcpyPeer>};
const PeerKind mpi_peer{.name = "MPI", .absent = {}, .processes = true, .open = open<MpiPeer>};

std::span<const PeerKind* const> peer_kinds() { return kKinds; }

std::vector<const PeerKind*> peers_named(std::string_view names, bool processes) {
  std::vector<const PeerKind*> found;
  if (names == "none") return found;
  const auto refusal = [&](const PeerKind& kind) {
    return !kind.absent.empty() ? std::string(kind.absent)
           : kind.processes && !processes
               ? "it needs ranks that are processes, started by mpirun or --ranks"
               : std::string();
  };
  if (names == "all") {
    for (const PeerKind* kind : kKinds)
      if (refusal(*kind).empty()) found.push_back(kind);
    return found;
  }
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    const std::string_view name = names.substr(begin, end - begin);
    begin = end + 1;
    const auto kind = std::ranges::find_if(
        kKinds, [&](const PeerKind* candidate) { return same_name(candidate->name, name); });
    if (kind == kKinds.end())
      throw ConfigError(fmt::format(
          "--peers: no peer is called '{}'; there are memcpy, mpi, gloo, oneccl, all and none",
          name));
    if (const std::string why = refusal(**kind); !why.empty())
      throw ConfigError(fmt::format("--peers {}: {}", (*kind)->name, why));
    found.push_back(*kind);
  }
  return found;
}

}  // namespace tutti::cli
