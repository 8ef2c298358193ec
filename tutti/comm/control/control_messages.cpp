#include "tutti/comm/control/control_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "tutti/base/error.h"

namespace tutti::comm {

// Precedes every control message, so that ranks that call different operations get an error. A
// broadcast sends nothing up: beside another operation it ends by its time-out.
struct ControlMessages::Header {
  uint64_t sequence;
  uint64_t bytes;
  Control kind;
  uint32_t unused;
  bool operator==(const Header&) const = default;
};

namespace {

enum Tag : int { kUp = 1, kPayload = 2, kDown = 3 };

// Bytes beside the header in the first message of a control operation.
constexpr size_t kFirst = Communicator::kMostCombined;
// A rank waits longer than its children do for theirs, so that the rank that knows best which one
// is late reports it first: seconds for each level of the tree.
constexpr double kGracePerLevel = 0.5;
// A wait for the answer gives the collecting ranks the head start of all levels, and this more.
constexpr double kGraceForAnswer = 3;

}  // namespace

const char* name_of(Control kind) {
  switch (kind) {
    case Control::barrier: return "barrier";
    case Control::broadcast: return "broadcast";
    case Control::allgather: return "allgather";
    case Control::combine: return "allreduce";
  }
  return "unknown operation";
}

std::string other_size(const std::string& from, size_t sent, size_t expected) {
  return fmt::format(
      "{} sent {} bytes where {} were expected; all ranks need the same configuration and the same "
      "program",
      from, sent, expected);
}

ControlMessages::ControlMessages(Communicator& communicator, Wire& wire, std::vector<int> members)
    : communicator_(communicator), wire_(wire), members_(std::move(members)) {}

// The first message of each child: its header, and up to kFirst bytes.
struct ControlMessages::Arrivals {
  std::span<const std::byte> payload(size_t i) const {
    return std::span(bytes).subspan(i * length + sizeof(Header), length - sizeof(Header));
  }
  size_t length = 0;
  std::vector<std::byte> bytes;
};

void ControlMessages::allgather(Control kind, std::span<const std::byte> mine,
                                std::span<std::byte> all) {
  ++sequence_;
  const size_t n = mine.size();
  std::copy(mine.begin(), mine.end(), all.begin() + static_cast<std::ptrdiff_t>(n) * rank());
  if (size() == 1) return;
  const Header header{sequence_, n, kind, 0};
  const ControlTree tree(rank(), size());
  Arrivals arrivals = from_children(header, tree);
  const auto rest = wire_.messages();
  std::vector<int> late;
  for (size_t i = 0; i < tree.children.size(); ++i) {
    const int child = tree.children[i];
    const auto room =
        all.subspan(static_cast<size_t>(child) * n, static_cast<size_t>(tree.sizes[i]) * n);
    const size_t first = std::min(kFirst, room.size());
    std::copy_n(arrivals.payload(i).begin(), first, room.begin());
    for (size_t begin = first; begin < room.size();
         begin += Wire::kLongestMessage, late.push_back(child))
      rest->receive(room.data() + begin, std::min(Wire::kLongestMessage, room.size() - begin),
                    child, kPayload);
  }
  wait_for_peers(*rest, name_of(kind), late,
                 kGracePerLevel * static_cast<double>(tree.children.size()));
  to_parent(header, tree,
            all.subspan(static_cast<size_t>(rank()) * n, static_cast<size_t>(tree.size) * n));
  down_tree(name_of(kind), header, all, 0);
}

void ControlMessages::combine(std::span<std::byte> value, const Communicator::Fold& fold) {
  ++sequence_;
  const Header header{sequence_, value.size(), Control::combine, 0};
  const ControlTree tree(rank(), size());
  Arrivals arrivals = from_children(header, tree);
  for (size_t i = 0; i < tree.children.size(); ++i) fold(value.data(), arrivals.payload(i).data());
  to_parent(header, tree, value);
  down_tree(name_of(Control::combine), header, value, 0);
}

ControlMessages::Arrivals ControlMessages::from_children(const Header& mine,
                                                         const ControlTree& tree) {
  const size_t children = tree.children.size();
  // A child in another operation may send that much.
  Arrivals arrivals{.length = sizeof(Header) + kFirst, .bytes = {}};
  arrivals.bytes.resize(children * arrivals.length);
  const auto incoming = wire_.messages();
  for (size_t i = 0; i < children; ++i)
    incoming->receive_up_to(arrivals.bytes.data() + i * arrivals.length, arrivals.length,
                            tree.children[i], kUp);
  wait_for_peers(*incoming, name_of(mine.kind), tree.children,
                 kGracePerLevel * static_cast<double>(std::max<size_t>(children, 1) - 1));
  for (size_t i = 0; i < children; ++i) {
    Header theirs;
    std::memcpy(&theirs, arrivals.bytes.data() + i * arrivals.length, sizeof theirs);
    if (theirs != mine) report_difference(mine, tree.children[i], theirs);
  }
  return arrivals;
}

void ControlMessages::to_parent(const Header& mine, const ControlTree& tree,
                                std::span<std::byte> payload) {
  if (tree.parent < 0) return;
  const size_t first = std::min(kFirst, payload.size());
  std::array<std::byte, sizeof(Header) + kFirst> message;
  std::memcpy(message.data(), &mine, sizeof mine);
  std::copy_n(payload.begin(), first, message.begin() + sizeof mine);
  const auto outgoing = wire_.messages();
  std::vector<int> parent{tree.parent};
  outgoing->send(message.data(), sizeof mine + first, tree.parent, kUp);
  for (size_t begin = first; begin < payload.size(); begin += Wire::kLongestMessage) {
    outgoing->send(payload.data() + begin, std::min(Wire::kLongestMessage, payload.size() - begin),
                   tree.parent, kPayload);
    parent.push_back(tree.parent);
  }
  wait_for_peers(*outgoing, name_of(mine.kind), parent, grace_for_answer());
}

double ControlMessages::grace_for_answer() const {
  const int levels = std::bit_width(static_cast<unsigned>(size() - 1));
  return kGraceForAnswer + kGracePerLevel * std::max(levels - 1, 0);  // the lowest level has none
}

// `peers` has one entry for each request.
void ControlMessages::wait_for_peers(Wire::Messages& messages, const std::string& what,
                                     const std::vector<int>& peers, double grace) {
  communicator_.wait_for(
      [&] { return messages.test(); },
      [&] {
        Pending pending{.operation = what,
                        .sequence = sequence_,
                        .arrived = {communicator_.rank()},
                        .missing = {}};
        for (size_t i = 0; i < peers.size(); ++i)
          (messages.done(i) ? pending.arrived : pending.missing).push_back(member(peers[i]));
        return pending;
      },
      grace);
}

void ControlMessages::report_difference(const Header& mine, int peer, const Header& theirs) {
  wire_.raise_alarm();
  throw CommError(fmt::format(
      "{}: operation number {}: {} calls {} of {} bytes, {} calls {} of {} bytes as its number {}",
      communicator_.describe_group(), mine.sequence, communicator_.rank_name(communicator_.rank()),
      name_of(mine.kind), mine.bytes, communicator_.rank_name(member(peer)), name_of(theirs.kind),
      theirs.bytes, theirs.sequence));
}

void ControlMessages::broadcast(std::span<std::byte> data, int root) {
  ++sequence_;
  down_tree("broadcast", Header{sequence_, data.size(), Control::broadcast, 0}, data, root);
}

// The first message holds the header of the root and the beginning of the data; a rank that is in
// another operation passes it on before it reports that.
void ControlMessages::down_tree(const char* what, const Header& mine, std::span<std::byte> data,
                                int root) {
  const size_t first = std::min(kFirst, data.size());
  std::array<std::byte, sizeof(Header) + kFirst> message;
  std::memcpy(message.data(), &mine, sizeof mine);
  if (rank() == root) std::copy_n(data.begin(), first, message.begin() + sizeof mine);
  relay(what, message, sizeof mine + first, root);
  Header theirs;
  std::memcpy(&theirs, message.data(), sizeof theirs);
  if (theirs != mine) report_difference(mine, root, theirs);
  if (rank() != root) std::copy_n(message.begin() + sizeof mine, first, data.begin());
  for (size_t begin = first; begin < data.size(); begin += Wire::kLongestMessage) {
    const auto piece = data.subspan(begin, std::min(Wire::kLongestMessage, data.size() - begin));
    if (const size_t came = relay(what, piece, piece.size(), root); came != piece.size())
      throw CommError(other_size(communicator_.rank_name(member(root)), came, piece.size()));
  }
}

// Sends one message of `bytes` from the root to all; returns how many bytes came.
size_t ControlMessages::relay(const char* what, std::span<std::byte> room, size_t bytes, int root) {
  const ControlTree tree(rank(), size(), root);
  if (tree.parent >= 0) {
    const auto incoming = wire_.messages();
    incoming->receive_up_to(room.data(), room.size(), tree.parent, kDown);
    wait_for_peers(*incoming, fmt::format("{} (answer)", what), {tree.parent}, grace_for_answer());
    bytes = incoming->arrived(0);
  }
  const auto outgoing = wire_.messages();
  const std::vector<int> children(tree.children.rbegin(), tree.children.rend());
  for (const int child : children)  // the largest subtree first
    outgoing->send(room.data(), bytes, child, kDown);
  wait_for_peers(*outgoing, what, children, grace_for_answer());
  return bytes;
}

}  // namespace tutti::comm
