#include "tutti/comm/mpi/mpi_communicator.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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

// Precedes every control message up, so that ranks that call different operations are told so.
struct MpiCommunicator::Header {
  uint64_t sequence;
  uint64_t bytes;
  Control kind;
  uint32_t unused;
};

namespace {

enum Tag : int { kHeader = 1, kPayload = 2, kDown = 3, kFirstPlanned = 16 };

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

// Allgather for control messages: everyone to rank 0, then down a binomial tree. Rank 0 therefore
// knows exactly who is late. Steps: 1 + ceil(log2 P). Bytes: rank 0 receives P * n; each link of
// the tree carries P * n once.
void MpiCommunicator::gather_all(Control kind, std::span<const std::byte> mine,
                                 std::span<std::byte> all) {
  ++sequence_;
  if (size() == 1) {
    std::copy(mine.begin(), mine.end(), all.begin());
    return;
  }
  const Header header{sequence_, mine.size(), kind, 0};
  collect_at_root(header, mine, all);
  down_tree(name_of(kind), header, all, 0);
}

void MpiCommunicator::collect_at_root(const Header& mine, std::span<const std::byte> payload,
                                      std::span<std::byte> all) {
  const auto wait_for_ranks = [&](Requests& requests, const char* what) {
    wait_for([&] { return requests.test(); },
             [&] {
               Pending pending{
                   .operation = what, .sequence = sequence_, .arrived = {rank()}, .missing = {}};
               for (int p = 1; p < size(); ++p)
                 (requests.done(static_cast<size_t>(p) - 1) ? pending.arrived : pending.missing)
                     .push_back(p);
               return pending;
             });
  };
  if (rank() != 0) {
    Requests requests;
    requests.send(&mine, sizeof mine, 0, kHeader, comm_);
    if (!payload.empty()) requests.send(payload.data(), payload.size(), 0, kPayload, comm_);
    wait_for([&] { return requests.test(); },
             [&] {
               return Pending{.operation = name_of(mine.kind),
                              .sequence = sequence_,
                              .arrived = {rank()},
                              .missing = {0}};
             });
    return;
  }
  std::vector<Header> headers(static_cast<size_t>(size()), mine);
  Requests announced;
  for (int p = 1; p < size(); ++p)
    announced.receive(&headers[static_cast<size_t>(p)], sizeof(Header), p, kHeader, comm_);
  wait_for_ranks(announced, name_of(mine.kind));
  for (int p = 1; p < size(); ++p)
    if (const Header& h = headers[static_cast<size_t>(p)];
        h.kind != mine.kind || h.bytes != mine.bytes || h.sequence != mine.sequence)
      throw CommError(
          fmt::format("{}: operation number {}: rank {} calls {} of {} bytes, {} calls {} of {} "
                      "bytes as its number {}",
                      describe_group(), mine.sequence, job_rank(0), name_of(mine.kind), mine.bytes,
                      rank_name(p), name_of(h.kind), h.bytes, h.sequence));
  if (payload.empty()) return;
  std::copy(payload.begin(), payload.end(), all.begin());
  Requests incoming;
  for (int p = 1; p < size(); ++p)
    incoming.receive(all.data() + static_cast<size_t>(p) * payload.size(), payload.size(), p,
                     kPayload, comm_);
  wait_for_ranks(incoming, name_of(mine.kind));
}

void MpiCommunicator::spread(std::span<std::byte> data, int root) {
  ++sequence_;
  down_tree("broadcast", Header{sequence_, data.size(), Control::broadcast, 0}, data, root);
}

// The first message holds the header of the root and the beginning of the data; a rank that finds
// itself in another operation passes it on before it says so.
void MpiCommunicator::down_tree(const char* what, const Header& mine, std::span<std::byte> data,
                                int root) {
  constexpr size_t kFirst = 4096;
  const size_t first = std::min(kFirst, data.size());
  std::array<std::byte, sizeof(Header) + kFirst> message;
  std::memcpy(message.data(), &mine, sizeof mine);
  if (rank() == root) std::copy_n(data.begin(), first, message.begin() + sizeof mine);
  relay(what, message, sizeof mine + first, root);
  Header theirs;
  std::memcpy(&theirs, message.data(), sizeof theirs);
  if (theirs.kind != mine.kind || theirs.bytes != mine.bytes || theirs.sequence != mine.sequence)
    throw CommError(fmt::format(
        "{}: operation number {}: {} calls {} of {} bytes, {} calls {} of {} bytes as its number "
        "{}",
        describe_group(), mine.sequence, rank_name(rank()), name_of(mine.kind), mine.bytes,
        rank_name(root), name_of(theirs.kind), theirs.bytes, theirs.sequence));
  if (rank() != root) std::copy_n(message.begin() + sizeof mine, first, data.begin());
  for (size_t begin = first; begin < data.size(); begin += kLongestMessage) {
    const auto piece = data.subspan(begin, std::min(kLongestMessage, data.size() - begin));
    if (const size_t came = relay(what, piece, piece.size(), root); came != piece.size())
      throw CommError(other_size(rank_name(root), came, piece.size()));
  }
}

// One message from the root to all, of `bytes` there; returns how many came. Binomial tree over v =
// (rank - root) mod P: v's parent is v without its lowest set bit.
size_t MpiCommunicator::relay(const char* what, std::span<std::byte> room, size_t bytes, int root) {
  const int v = (rank() - root + size()) % size();
  const int lowest = v == 0 ? size() : v & -v;
  const auto rank_of = [&](int virtual_rank) { return (virtual_rank + root) % size(); };
  // Waiting for the parent, not for the rank that is really late: whoever gathers knows that one,
  // and has a head start to say so.
  constexpr double kGrace = 3;
  if (v != 0) {
    const int parent = rank_of(v - lowest);
    Requests incoming;
    incoming.receive_up_to(room.data(), room.size(), parent, kDown, comm_);
    wait_for([&] { return incoming.test(); },
             [&] {
               return Pending{.operation = fmt::format("{} (answer)", what),
                              .sequence = sequence_,
                              .arrived = {rank()},
                              .missing = {parent}};
             },
             kGrace);
    bytes = incoming.arrived(0);
  }
  Requests outgoing;
  std::vector<int> children;
  for (int step = 1; step < lowest && v + step < size(); step *= 2)
    children.push_back(rank_of(v + step));
  std::ranges::reverse(children);  // the largest subtree first
  for (const int child : children) outgoing.send(room.data(), bytes, child, kDown, comm_);
  wait_for([&] { return outgoing.test(); },
           [&] {
             Pending pending{
                 .operation = what, .sequence = sequence_, .arrived = {rank()}, .missing = {}};
             for (size_t i = 0; i < children.size(); ++i)
               (outgoing.done(i) ? pending.arrived : pending.missing).push_back(children[i]);
             return pending;
           },
           kGrace);
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
