// MpiCommunicator's memory: whether its ranks see each other's, and windows.

#include <fmt/format.h>
#include <unistd.h>

#include <exception>
#include <optional>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/comm/mpi/mpi_communicator.h"
#include "tutti/comm/shm/segment.h"

namespace tutti::comm {
namespace {

// Of this process, over all communicators.
uint64_t next_window_id() {
  static uint64_t last = 0;
  return ++last;
}

class SegmentWindow final : public Window {
 public:
  SegmentWindow(int rank, std::vector<SharedSegment> segments, uint64_t id,
                std::shared_ptr<WindowRegistry> registry)
      : Window(rank, true, spans(segments)), segments_(std::move(segments)), id_(id),
        registry_(std::move(registry)) {
    registry_->add(id_, this);
  }
  ~SegmentWindow() override { registry_->remove(id_); }

 private:
  static std::vector<std::span<std::byte>> spans(const std::vector<SharedSegment>& segments) {
    std::vector<std::span<std::byte>> all;
    for (const SharedSegment& segment : segments) all.push_back(segment.memory());
    return all;
  }
  std::vector<SharedSegment> segments_;
  uint64_t id_;
  std::shared_ptr<WindowRegistry> registry_;
};

// The same kind of memory, seen by this process alone.
class PrivateWindow final : public Window {
 public:
  PrivateWindow(int rank, int size, SharedSegment segment)
      : Window(rank, false, spans(rank, size, segment)), segment_(std::move(segment)) {
    segment_.close_descriptor();
  }

 private:
  static std::vector<std::span<std::byte>> spans(int rank, int size, const SharedSegment& segment) {
    std::vector<std::span<std::byte>> all(static_cast<size_t>(size));
    all[static_cast<size_t>(rank)] = segment.memory();
    return all;
  }
  SharedSegment segment_;
};

}  // namespace

// A segment of each rank, as this rank sees them.
struct MpiCommunicator::Segments {
  std::vector<SharedSegment> of_rank;
  uint64_t id = 0;
  int blind = -1, unseen = -1;  // the first rank that cannot map another's, if there is one
};

// Collective; the answer is the same on all ranks. One without memory for its own throws, and so do
// the others.
MpiCommunicator::Segments MpiCommunicator::map_segments(size_t bytes, PeerAccess access) {
  struct Offer {
    uint64_t bytes = 0;
    uint64_t id = 0;
    uint64_t nonce = 0;
    int descriptor = -1;
    int refused = 0;
  };
  SharedSegment mine;
  std::exception_ptr refusal;
  try {
    mine = SharedSegment::create(bytes);
  } catch (const CommError&) {
    refusal = std::current_exception();
  }
  // Rank 0's process and counter name the window: no two communicators of this node give the same
  // name.
  Segments segments;
  const uint64_t id = static_cast<uint64_t>(getpid()) << 32 | next_window_id();
  const std::vector<Offer> offers =
      allgather_value(Offer{bytes, id, mine.nonce(), mine.descriptor(), refusal ? 1 : 0});
  if (refusal) std::rethrow_exception(refusal);
  for (int p = 0; p < size(); ++p)
    if (const Offer& offer = offers[static_cast<size_t>(p)]; offer.refused != 0)
      throw CommError(
          fmt::format("{} has no memory for a window of {} bytes: its own error says why",
                      rank_name(p), offer.bytes));
  segments.id = offers[0].id;
  int missing = -1;
  for (int p = 0; p < size(); ++p) {
    const Offer& offer = offers[static_cast<size_t>(p)];
    std::optional<SharedSegment> segment;
    if (p == rank())
      segment = std::move(mine);
    else if (same_namespace_[static_cast<size_t>(p)])
      segment = SharedSegment::open(processes_[static_cast<size_t>(p)], offer.descriptor,
                                    offer.bytes, offer.nonce, access);
    if (!segment) missing = p;
    segments.of_rank.push_back(segment ? std::move(*segment) : SharedSegment());
  }
  // All or nothing; also the moment after which the owners may close their descriptors.
  const std::vector<int> verdicts = allgather_value(missing);
  for (int p = 0; p < size() && segments.blind < 0; ++p)
    if (const int unseen = verdicts[static_cast<size_t>(p)]; unseen >= 0)
      segments.blind = p, segments.unseen = unseen;
  segments.of_rank[static_cast<size_t>(rank())].close_descriptor();
  return segments;
}

// Whether the ranks of this communicator share memory: found out once, so that all its windows and
// channels are of one kind.
void MpiCommunicator::look_for_memory() {
  if (!shared_memory_ || !one_node()) return;
  if (shared_.sight == Shared::Sight::all) {
    shares_ = true;
    return;
  }
  const Segments probe = map_segments(1, PeerAccess::write);
  shares_ = probe.blind < 0;
  const bool known = shared_.sight == Shared::Sight::not_all;  // and reported by the whole
  shared_.sight = shares_ ? Shared::Sight::all : Shared::Sight::not_all;
  if (!shares_ && !known && rank() == 0)
    log::warn(
        "{} cannot map the memory of {} on the same node ({}): all messages go through MPI instead",
        rank_name(probe.blind), rank_name(probe.unseen),
        same_namespace_[static_cast<size_t>(probe.blind)] ==
                same_namespace_[static_cast<size_t>(probe.unseen)]
            ? "separate containers or users?"
            : "they are in separate process namespaces, as containers are");
}

std::unique_ptr<Window> MpiCommunicator::allocate(size_t bytes, PeerAccess access) {
  if (!shares_)
    return std::make_unique<PrivateWindow>(rank(), size(), SharedSegment::create(bytes));
  Segments segments = map_segments(bytes, access);
  if (segments.blind >= 0)
    throw CommError(
        fmt::format("{} cannot map a window of {}, as it could when the job began: is the limit on "
                    "mappings (sysctl vm.max_map_count) or on open files (ulimit -n) reached?",
                    rank_name(segments.blind), rank_name(segments.unseen)));
  return std::make_unique<SegmentWindow>(rank(), std::move(segments.of_rank), segments.id,
                                         shared_.registry);
}

}  // namespace tutti::comm
