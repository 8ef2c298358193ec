// ProcessCommunicator's memory: whether its ranks see each other's memory, and windows.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/comm/transport/process_communicator.h"
#include "tutti/comm/transport/shm/segment.h"

namespace tutti::comm {
namespace {

// Unique in this process, over all communicators and threads.
uint64_t next_window_id() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

class SegmentWindow final : public Window {
 public:
  SegmentWindow(int rank, std::shared_ptr<const Neighbours> neighbours,
                std::vector<SharedSegment> segments, uint64_t id,
                std::shared_ptr<WindowRegistry> registry)
      : Window(rank, std::move(neighbours), spans(segments)), segments_(std::move(segments)),
        id_(id), registry_(std::move(registry)) {
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

}  // namespace

// The segments of all neighbours, as this rank sees them.
struct ProcessCommunicator::Segments {
  std::vector<SharedSegment> of_neighbour;
  uint64_t id = 0;
  int unseen = -1;  // a rank whose memory this one cannot map, if any
  int blind = 0;    // the lowest rank that has an unseen rank; size() if there is none
};

// Collective among all ranks. When a rank has no memory for its segment, it throws, and so do all.
// Each rank backs its own segment. Where neighbours have one segment together (`once`), each backs
// the ranges `mine` of the first neighbour's, which then backs the rest.
ProcessCommunicator::Segments ProcessCommunicator::map_segments(size_t bytes, PeerAccess access,
                                                                bool once,
                                                                std::span<const Slice> mine) {
  struct Offer {
    uint64_t bytes = 0;
    uint64_t id = 0;
    uint64_t nonce = 0;
    int descriptor = -1;
    int refused = 0;
  };
  SharedSegment own;
  std::exception_ptr refusal;
  const auto guarded = [&refusal](const auto& work) {
    try {
      if (!refusal) work();
    } catch (const CommError&) {
      refusal = std::current_exception();
    }
  };
  const bool owner = !once || rank() == neighbours().first();
  guarded([&] {
    own = SharedSegment::create(owner ? bytes : 0);
    if (!once) own.back(0, bytes);
  });
  // The process and the counter of the first neighbour name the window: no two communicators of
  // this node give the same name.
  Segments segments;
  const uint64_t id = static_cast<uint64_t>(getpid()) << 32 | next_window_id();
  const Offer offer{own.memory().size(), id, own.nonce(), own.descriptor(), refusal ? 1 : 0};
  const int near = neighbours().size();
  const std::vector<Offer> offers = near == size() ? control_.gather(offer)
                                    : near > 1     ? near_control_->gather(offer)
                                                   : std::vector<Offer>{offer};
  segments.id = offers[0].id;
  for (int i = 0; i < near; ++i) {
    const Offer& theirs = offers[static_cast<size_t>(i)];
    const int p = neighbours().ranks()[static_cast<size_t>(i)];
    std::optional<SharedSegment> segment;
    if (p == rank())
      segment = std::move(own);
    else if (theirs.refused == 0)
      segment = SharedSegment::open(processes_[static_cast<size_t>(p)].id, theirs.descriptor,
                                    theirs.bytes, theirs.nonce, access);
    if (!segment && theirs.refused == 0) segments.unseen = p;
    segments.of_neighbour.push_back(segment ? std::move(*segment) : SharedSegment());
  }
  SharedSegment& first = segments.of_neighbour.front();
  guarded([&] {
    for (const Slice& range : mine)
      if (!first.memory().empty()) first.back(range.begin, range.end());
  });
  agree_on_segments(segments, refusal);
  if (!once) return segments;
  guarded([&] {
    if (owner) first.back(0, bytes);
  });
  agree_on_segments(segments, refusal);
  return segments;
}

// Finds out whether all ranks have their memory. Afterwards descriptors may be closed.
void ProcessCommunicator::agree_on_segments(Segments& segments, const std::exception_ptr& refusal) {
  struct Lowest {
    int refused, blind;
  };
  const Lowest lowest =
      combine_value(Lowest{refusal ? rank() : size(), segments.unseen >= 0 ? rank() : size()},
                    [](Lowest& a, const Lowest& b) {
                      a = {std::min(a.refused, b.refused), std::min(a.blind, b.blind)};
                    });
  segments.blind = lowest.blind;
  if (refusal) std::rethrow_exception(refusal);
  if (lowest.refused < size())
    throw CommError(fmt::format("{} has no memory for a window: its own error says why",
                                rank_name(lowest.refused)));
}

// Finds out once whether neighbours really see each other's memory, so that all windows and
// channels are of one kind. A group of neighbours in which one rank does not is dissolved. Returns
// such a rank, the same on every rank.
std::optional<ProcessCommunicator::Blindness> ProcessCommunicator::look_for_memory() {
  if (!options_.shared_memory) return std::nullopt;
  const Segments probe = map_segments(1, PeerAccess::write);
  if (probe.blind == size()) {  // a node in several namespaces is also blind, without a probe
    for (int p = 0; p < size(); ++p)
      if (const int first = places()[p].node; places()[p].memory != places()[first].memory)
        return Blindness{first, p};
    return std::nullopt;
  }
  const std::vector<int> unseen = allgather_value(probe.unseen);
  std::vector<Place> found = places().all();
  std::vector<char> dark(static_cast<size_t>(size()));  // by Place::memory
  for (size_t p = 0; p < found.size(); ++p)
    if (unseen[p] >= 0) dark[static_cast<size_t>(found[p].memory)] = 1;
  for (int p = 0; p < size(); ++p)
    if (Place& at = found[static_cast<size_t>(p)]; dark[static_cast<size_t>(at.memory)] != 0)
      at.memory = p;
  set_places(std::move(found));
  meet_neighbours();
  return Blindness{probe.blind, unseen[static_cast<size_t>(probe.blind)]};
}

void ProcessCommunicator::report_blindness(const Blindness& found) const {
  if (rank() != 0) return;
  const auto name_space = [&](int p) { return processes_[static_cast<size_t>(p)].name_space; };
  log::warn(
      "{} cannot map the memory of {} on the same node ({}): their messages go through {} instead",
      rank_name(found.rank), rank_name(found.unseen),
      name_space(found.rank) == name_space(found.unseen)
          ? "separate containers or users?"
          : "they are in separate process namespaces, as containers are",
      wire_->name());
}

std::unique_ptr<Window> ProcessCommunicator::window_of(Segments segments) const {
  if (segments.blind < size())
    throw CommError(
        fmt::format("{} cannot map a window of another rank of its node, as it could when the job "
                    "began: is the limit on mappings (sysctl vm.max_map_count) or on open files "
                    "(ulimit -n) reached?",
                    rank_name(segments.blind)));
  for (SharedSegment& segment : segments.of_neighbour) {
    segment.close_descriptor();
    segment.enlarge_pages();
  }
  return std::make_unique<SegmentWindow>(rank(), places().neighbours(),
                                         std::move(segments.of_neighbour), segments.id, registry_);
}

std::unique_ptr<Window> ProcessCommunicator::allocate(size_t bytes, PeerAccess access) {
  return window_of(map_segments(bytes, access));
}

std::unique_ptr<Window> ProcessCommunicator::allocate_once(size_t bytes,
                                                           std::span<const Slice> mine) {
  return window_of(map_segments(bytes, PeerAccess::write, true, mine));
}

}  // namespace tutti::comm
