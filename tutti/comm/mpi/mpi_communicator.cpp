#include "tutti/comm/mpi/mpi_communicator.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <optional>

#include "tutti/base/error.h"
#include "tutti/comm/launcher.h"
#include "tutti/comm/mpi/deadline.h"
#include "tutti/comm/mpi/mpi_channel.h"
#include "tutti/comm/shm/shared_channel.h"

namespace tutti::comm {

// Precedes every control message, so that ranks that call different operations are told so. A
// broadcast sends nothing up: beside another operation it ends by its time-out.
struct MpiCommunicator::Header {
  uint64_t sequence;
  uint64_t bytes;
  Control kind;
  uint32_t unused;
  bool operator==(const Header&) const = default;
};

namespace {

enum Tag : int { kUp = 1, kPayload = 2, kDown = 3, kFirstPlanned = 16 };

// Bytes beside the header in the first message of a control operation.
constexpr size_t kFirst = Communicator::kMostCombined;
// A rank waits longer than its children do for theirs, so that whoever knows best who is late says
// so first: seconds for each level of the tree.
constexpr double kGracePerLevel = 0.5;
// Waiting for the answer: those who collect have all levels' head start, and this more.
constexpr double kGraceForAnswer = 3;

// One rank's place, as sent to all. Two ranks are on one node when the running kernel is the same
// (and the host name, if that is asked for), and can signal each other when the process namespace
// is the same too (it differs between some containers of one node).
struct PlaceRecord {
  std::array<char, 128> host{};
  std::array<char, 64> kernel{};
  std::array<char, 32> process_namespace{};
  pid_t process = 0;

  bool on_node_of(const PlaceRecord& other, Nodes nodes) const {
    return kernel == other.kernel && (nodes == Nodes::kernel || host == other.host);
  }
};

template <size_t N>
void put(std::array<char, N>& field, const std::string& text) {
  std::strncpy(field.data(), text.c_str(), N - 1);
}

PlaceRecord my_place() {
  PlaceRecord place;
  gethostname(place.host.data(), place.host.size() - 1);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  put(place.kernel, boot.empty() ? place.host.data() : boot);
  std::array<char, 31> name{};
  if (readlink("/proc/self/ns/pid", name.data(), name.size() - 1) > 0)
    put(place.process_namespace, name.data());
  place.process = getpid();
  return place;
}

}  // namespace

int MpiCommunicator::size_of_group(MPI_Comm comm) {
  int size = 0;
  MPI_CALL(MPI_Comm_size(comm, &size));
  return size;
}

int MpiCommunicator::rank_in_group(MPI_Comm comm) {
  int rank = 0;
  MPI_CALL(MPI_Comm_rank(comm, &rank));
  return rank;
}

MpiCommunicator::MpiCommunicator(MPI_Comm world, const MpiOptions& options, Shared shared,
                                 Group group)
    : Communicator(rank_in_group(world), size_of_group(world), std::move(group)),
      shared_memory_(options.shared_memory), nodes_(options.nodes), shared_(std::move(shared)),
      next_tag_(kFirstPlanned) {
  set_timeout(options.timeout);
  const Deadline deadline(fmt::format("rank {}: setting up {}", job_rank(rank()), describe_group()),
                          timeout());
  if (!shared_.registry) shared_.registry = std::make_shared<WindowRegistry>(false);
  if (!shared_.alarm) shared_.alarm = std::make_shared<Alarm>(world);
  MPI_CALL(MPI_Comm_dup(world, &comm_));
  MPI_CALL(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
  find_places();
  look_for_memory();
}

MpiCommunicator::~MpiCommunicator() {
  // Freeing is collective: not while an exception passes, when others may never come.
  if (std::uncaught_exceptions() > 0) return;
  const Deadline deadline(fmt::format("{}: leaving {}", who(), describe_group()), timeout());
  MPI_Comm_free(&comm_);
}

void MpiCommunicator::find_places() {
  const PlaceRecord mine = my_place();
  std::vector<Place> places(static_cast<size_t>(size()),
                            Place{.host = "(host not yet known)", .node = 0});
  places[static_cast<size_t>(rank())].host = mine.host.data();
  set_places(places);  // so that a failure of the next line can name this rank
  const std::vector<PlaceRecord> all = allgather_value(mine);

  for (size_t p = 0; p < all.size(); ++p) {
    places[p].host = all[p].host.data();
    const auto first = std::ranges::find_if(
        all, [&](const PlaceRecord& other) { return other.on_node_of(all[p], nodes_); });
    places[p].node = static_cast<int>(first - all.begin());
    places[p].kernel =
        static_cast<int>(std::ranges::find(all, all[p].kernel, &PlaceRecord::kernel) - all.begin());
    processes_.push_back(all[p].process);
    same_namespace_.push_back(all[p].process_namespace == mine.process_namespace);
  }
  set_places(places);
  std::vector<pid_t> watched = processes_;
  for (size_t p = 0; p < all.size(); ++p)
    if (!all[p].on_node_of(mine, nodes_) || !same_namespace_[p] || static_cast<int>(p) == rank())
      watched[p] = 0;
  watch_ = std::make_unique<ProcessWatch>(std::move(watched));
}

std::string MpiCommunicator::transport() const { return shares_ ? "shared memory" : "MPI"; }

std::string MpiCommunicator::progress_refusal() const {
  int provided = 0;
  MPI_CALL(MPI_Query_thread(&provided));
  if (provided == MPI_THREAD_MULTIPLE) return {};
  const char* const level = provided == MPI_THREAD_SERIALIZED ? "MPI_THREAD_SERIALIZED"
                            : provided == MPI_THREAD_FUNNELED ? "MPI_THREAD_FUNNELED"
                                                              : "MPI_THREAD_SINGLE";
  return fmt::format("{} grants {} and not MPI_THREAD_MULTIPLE", MpiSession::library_version(),
                     level);
}

void MpiCommunicator::abort(int code, const std::string& message) {
  do_last_act(signed_message(message));
  Alarm::linger();
  abort_in_turn(comm_, code);
  std::_Exit(code);
}

// What every child begins with: its header, and up to kFirst bytes.
struct MpiCommunicator::Arrivals {
  std::span<const std::byte> payload(size_t i) const {
    return std::span(bytes).subspan(i * length + sizeof(Header), length - sizeof(Header));
  }
  size_t length = 0;
  std::vector<std::byte> bytes;
};

void MpiCommunicator::gather_all(Control kind, std::span<const std::byte> mine,
                                 std::span<std::byte> all) {
  ++sequence_;
  const size_t n = mine.size();
  std::copy(mine.begin(), mine.end(), all.begin() + static_cast<std::ptrdiff_t>(n) * rank());
  if (size() == 1) return;
  const Header header{sequence_, n, kind, 0};
  const ControlTree tree(rank(), size());
  Arrivals arrivals = from_children(header, tree);
  Requests rest;
  std::vector<int> late;
  for (size_t i = 0; i < tree.children.size(); ++i) {
    const int child = tree.children[i];
    const auto room =
        all.subspan(static_cast<size_t>(child) * n, static_cast<size_t>(tree.sizes[i]) * n);
    const size_t first = std::min(kFirst, room.size());
    std::copy_n(arrivals.payload(i).begin(), first, room.begin());
    for (size_t begin = first; begin < room.size(); begin += kLongestMessage, late.push_back(child))
      rest.receive(room.data() + begin, std::min(kLongestMessage, room.size() - begin), child,
                   kPayload, comm_);
  }
  wait_for_peers(rest, name_of(kind), late,
                 kGracePerLevel * static_cast<double>(tree.children.size()));
  to_parent(header, tree,
            all.subspan(static_cast<size_t>(rank()) * n, static_cast<size_t>(tree.size) * n));
  down_tree(name_of(kind), header, all, 0);
}

void MpiCommunicator::fold_all(std::span<std::byte> value, const Fold& fold) {
  ++sequence_;
  const Header header{sequence_, value.size(), Control::combine, 0};
  const ControlTree tree(rank(), size());
  Arrivals arrivals = from_children(header, tree);
  for (size_t i = 0; i < tree.children.size(); ++i) fold(value.data(), arrivals.payload(i).data());
  to_parent(header, tree, value);
  down_tree(name_of(Control::combine), header, value, 0);
}

MpiCommunicator::Arrivals MpiCommunicator::from_children(const Header& mine,
                                                         const ControlTree& tree) {
  const size_t children = tree.children.size();
  // Whoever is in another operation may send that much.
  Arrivals arrivals{.length = sizeof(Header) + kFirst, .bytes = {}};
  arrivals.bytes.resize(children * arrivals.length);
  Requests incoming;
  for (size_t i = 0; i < children; ++i)
    incoming.receive_up_to(arrivals.bytes.data() + i * arrivals.length, arrivals.length,
                           tree.children[i], kUp, comm_);
  wait_for_peers(incoming, name_of(mine.kind), tree.children,
                 kGracePerLevel * static_cast<double>(std::max<size_t>(children, 1) - 1));
  for (size_t i = 0; i < children; ++i) {
    Header theirs;
    std::memcpy(&theirs, arrivals.bytes.data() + i * arrivals.length, sizeof theirs);
    if (theirs != mine) report_difference(mine, tree.children[i], theirs);
  }
  return arrivals;
}

void MpiCommunicator::to_parent(const Header& mine, const ControlTree& tree,
                                std::span<std::byte> payload) {
  if (tree.parent < 0) return;
  const size_t first = std::min(kFirst, payload.size());
  std::array<std::byte, sizeof(Header) + kFirst> message;
  std::memcpy(message.data(), &mine, sizeof mine);
  std::copy_n(payload.begin(), first, message.begin() + sizeof mine);
  Requests outgoing;
  std::vector<int> parent{tree.parent};
  outgoing.send(message.data(), sizeof mine + first, tree.parent, kUp, comm_);
  for (size_t begin = first; begin < payload.size(); begin += kLongestMessage) {
    outgoing.send(payload.data() + begin, std::min(kLongestMessage, payload.size() - begin),
                  tree.parent, kPayload, comm_);
    parent.push_back(tree.parent);
  }
  wait_for_peers(outgoing, name_of(mine.kind), parent, grace_for_answer());
}

double MpiCommunicator::grace_for_answer() const {
  const int levels = std::bit_width(static_cast<unsigned>(size() - 1));
  return kGraceForAnswer + kGracePerLevel * std::max(levels - 1, 0);  // the lowest level has none
}

// `peers` has one entry for each request.
void MpiCommunicator::wait_for_peers(Requests& requests, const std::string& what,
                                     const std::vector<int>& peers, double grace) {
  wait_for([&] { return requests.test(); },
           [&] {
             Pending pending{
                 .operation = what, .sequence = sequence_, .arrived = {rank()}, .missing = {}};
             for (size_t i = 0; i < peers.size(); ++i)
               (requests.done(i) ? pending.arrived : pending.missing).push_back(peers[i]);
             return pending;
           },
           grace);
}

void MpiCommunicator::report_difference(const Header& mine, int peer, const Header& theirs) {
  shared_.alarm->raise();
  throw CommError(fmt::format(
      "{}: operation number {}: {} calls {} of {} bytes, {} calls {} of {} bytes as its number {}",
      describe_group(), mine.sequence, rank_name(rank()), name_of(mine.kind), mine.bytes,
      rank_name(peer), name_of(theirs.kind), theirs.bytes, theirs.sequence));
}

void MpiCommunicator::spread(std::span<std::byte> data, int root) {
  ++sequence_;
  down_tree("broadcast", Header{sequence_, data.size(), Control::broadcast, 0}, data, root);
}

// The first message holds the header of the root and the beginning of the data; a rank that finds
// itself in another operation passes it on before it says so.
void MpiCommunicator::down_tree(const char* what, const Header& mine, std::span<std::byte> data,
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
  for (size_t begin = first; begin < data.size(); begin += kLongestMessage) {
    const auto piece = data.subspan(begin, std::min(kLongestMessage, data.size() - begin));
    if (const size_t came = relay(what, piece, piece.size(), root); came != piece.size())
      throw CommError(other_size(rank_name(root), came, piece.size()));
  }
}

// One message from the root to all, of `bytes` there; returns how many came.
size_t MpiCommunicator::relay(const char* what, std::span<std::byte> room, size_t bytes, int root) {
  const ControlTree tree(rank(), size(), root);
  if (tree.parent >= 0) {
    Requests incoming;
    incoming.receive_up_to(room.data(), room.size(), tree.parent, kDown, comm_);
    wait_for_peers(incoming, fmt::format("{} (answer)", what), {tree.parent}, grace_for_answer());
    bytes = incoming.arrived(0);
  }
  Requests outgoing;
  const std::vector<int> children(tree.children.rbegin(), tree.children.rend());
  for (const int child : children)  // the largest subtree first
    outgoing.send(room.data(), bytes, child, kDown, comm_);
  wait_for_peers(outgoing, what, children, grace_for_answer());
  return bytes;
}

// Never given back: a late message of a destroyed operation must not meet a new one. The smallest
// number of tags that MPI allows is 32,767, the usual one far larger.
int MpiCommunicator::take_tag() {
  int* largest = nullptr;
  int found = 0;
  MPI_CALL(MPI_Comm_get_attr(comm_, MPI_TAG_UB, &largest, &found));
  if (found != 0 && next_tag_ > *largest)
    throw CommError(fmt::format("{} collectives were planned: this MPI library has no more tags",
                                next_tag_ - kFirstPlanned));
  return next_tag_++;
}

std::unique_ptr<Channel> MpiCommunicator::make_channel(std::vector<RoundOfMessages> rounds) {
  if (shares_) return std::make_unique<SharedChannel>(*this, shared_.registry, std::move(rounds));
  return std::make_unique<MpiChannel>(*this, std::move(rounds), comm_, take_tag());
}

std::unique_ptr<Communicator> MpiCommunicator::make_part(const std::vector<int>& members,
                                                         Group group) {
  const auto mine = std::ranges::find(members, rank()) - members.begin();
  MPI_Comm part = MPI_COMM_NULL;
  const Deadline deadline(fmt::format("{}: making group '{}'", who(), group.name), timeout());
  MPI_CALL(MPI_Comm_split(comm_, members.front(), static_cast<int>(mine), &part));
  const MpiOptions options{.shared_memory = shared_memory_, .timeout = timeout(), .nodes = nodes_};
  auto communicator = std::make_unique<MpiCommunicator>(part, options, shared_, std::move(group));
  MPI_CALL(MPI_Comm_free(&part));
  return communicator;
}

std::string MpiCommunicator::alarm() {
  const std::optional<int> rank = shared_.alarm->raised();
  return rank ? fmt::format("rank {} of the job has given up (see its report), so the job ends",
                            *rank)
              : std::string();
}

std::string MpiCommunicator::lost_peer(std::span<const int> ranks) const {
  if (!watch_) return {};  // still finding out where everyone is
  for (const int p : ranks)
    if (watch_->gone(p))
      return fmt::format("{} is gone (process {} has ended)", rank_name(p), watch_->process(p));
  return {};
}

}  // namespace tutti::comm
