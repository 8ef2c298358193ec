#include "tutti/comm/transport/process_communicator.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string_view>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/process_state.h"
#include "tutti/comm/transport/routed_channel.h"

namespace tutti::comm {
namespace {

// One rank's place, as sent to all. Two ranks are on one node when the running kernel is the same
// (and the host name, if the options ask for it), and can signal each other when the process
// namespace is the same too (it differs between some containers of one node).
struct PlaceRecord {
  std::array<char, 128> host{};
  std::array<char, 64> kernel{};
  std::array<char, 32> process_namespace{};
  pid_t process = 0;
  int nodes = 0;  // the option ProcessOptions::nodes
};

template <size_t N>
void put(std::array<char, N>& field, const std::string& text) {
  std::strncpy(field.data(), text.c_str(), N - 1);
}

PlaceRecord my_place() {
  PlaceRecord place;
  put(place.host, host_name());
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  put(place.kernel, boot.empty() ? place.host.data() : boot);
  std::array<char, 31> name{};
  if (readlink("/proc/self/ns/pid", name.data(), name.size() - 1) > 0)
    put(place.process_namespace, name.data());
  place.process = getpid();
  return place;
}

// The lowest rank with each text: equal numbers for equal texts.
class FirstWith {
 public:
  int number(const std::string& text, size_t rank) {
    return first_.emplace(text, static_cast<int>(rank)).first->second;
  }

 private:
  std::map<std::string, int> first_;
};

}  // namespace

Nodes nodes_named(std::string_view name) {
  if (name == "auto") return Nodes::kernel;
  if (name == "hostname") return Nodes::hostname;
  throw ConfigError(
      fmt::format("nodes are told apart by 'auto' or by 'hostname', not by '{}'", name));
}

WireKind wire_named(std::string_view name) {
  if (name == "auto") return WireKind::automatic;
  if (name == "mpi") return WireKind::mpi;
  if (name == "tcp") return WireKind::tcp;
  throw ConfigError(fmt::format("a wire is 'auto', 'mpi' or 'tcp', not '{}'", name));
}

ProcessCommunicator::ProcessCommunicator(std::unique_ptr<Wire> wire, const ProcessOptions& options)
    : Communicator(wire->rank(), wire->size()), wire_(std::move(wire)), control_(*this, *wire_),
      options_(options), registry_(std::make_shared<WindowRegistry>(false)) {
  set_timeout(options.timeout);
  find_places();
  watch();
  meet_neighbours();
  const std::optional<Blindness> found = look_for_memory();
  if (found) report_blindness(*found);
}

ProcessCommunicator::ProcessCommunicator(ProcessCommunicator& whole, std::unique_ptr<Wire> wire,
                                         const std::vector<int>& members, Group group)
    : Communicator(wire->rank(), wire->size(), std::move(group)), wire_(std::move(wire)),
      control_(*this, *wire_), options_(whole.options_), registry_(whole.registry_) {
  set_timeout(whole.timeout());
  std::vector<Place> places;
  for (const int p : members) {
    places.push_back(whole.places()[p]);
    processes_.push_back(whole.processes_[static_cast<size_t>(p)]);
  }
  set_places(std::move(places));
  watch();
  meet_neighbours();
}

ProcessCommunicator::~ProcessCommunicator() = default;

void ProcessCommunicator::find_places() {
  PlaceRecord mine = my_place();
  mine.nodes = static_cast<int>(options_.nodes);
  std::vector<Place> places(static_cast<size_t>(size()),
                            Place{.host = "(host not yet known)", .memory = -1});
  places[static_cast<size_t>(rank())] = {.host = mine.host.data(), .memory = rank()};
  set_places(places);  // so that a failure of the next line can name this rank
  const std::vector<PlaceRecord> all = allgather_value(mine);

  for (size_t p = 1; p < all.size(); ++p)
    if (all[p].nodes != all[0].nodes)
      throw ConfigError(fmt::format(
          "ranks 0 and {} tell nodes apart in different ways (comm.nodes, TUTTI_COMM_NODES)", p));

  FirstWith kernels, nodes, namespaces, memories;
  for (size_t p = 0; p < all.size(); ++p) {
    const std::string kernel = all[p].kernel.data(), host = all[p].host.data();
    const std::string node = options_.nodes == Nodes::kernel ? kernel : kernel + '\n' + host;
    Place& place = places[p];
    place.host = host;
    place.kernel = kernels.number(kernel, p);
    place.node = nodes.number(node, p);
    const int name_space = namespaces.number(all[p].process_namespace.data(), p);
    processes_.push_back({all[p].process, name_space});
    // look_for_memory() finds out whether this is true.
    place.memory = options_.shared_memory
                       ? memories.number(fmt::format("{} {}", place.node, name_space), p)
                       : static_cast<int>(p);
  }
  set_places(std::move(places));
}

// Watches processes of this node whose end this rank would see.
void ProcessCommunicator::watch() {
  std::vector<pid_t> watched(processes_.size());
  const Process& mine = processes_[static_cast<size_t>(rank())];
  for (int p = 0; p < size(); ++p) {
    const Process& process = processes_[static_cast<size_t>(p)];
    if (p != rank() && same_node(p) && process.name_space == mine.name_space)
      watched[static_cast<size_t>(p)] = process.id;
  }
  watch_ = std::make_unique<ProcessWatch>(std::move(watched));
}

// Makes a wire among the neighbours where these are neither all ranks nor this one alone: all ranks
// know this from their places.
void ProcessCommunicator::meet_neighbours() {
  const bool all = neighbours().size() == size();
  near_control_.reset();
  near_wire_.reset();
  if (!all && shares_memory()) {
    const auto ranks = neighbours().ranks();
    const std::vector<int> near(ranks.begin(), ranks.end());
    near_wire_ =
        wire_->part(near, fmt::format("{}: meeting the ranks of this node", who()), timeout());
    near_control_.emplace(*this, *near_wire_, near);
  }
  mailboxes_ =
      std::make_shared<Mailboxes>(neighbours().size(), neighbours().index(rank()), registry_);
}

std::string ProcessCommunicator::transport() const {
  if (neighbours().size() == size()) return "shared memory";
  // Either all ranks have near_wire_ or none has.
  return near_wire_ ? fmt::format("shared memory and {}", wire_->name()) : wire_->name();
}

void ProcessCommunicator::abort(int code, const std::string& message) {
  wire_->abort(code, signed_message(message));
  std::_Exit(code);
}

std::unique_ptr<Channel> ProcessCommunicator::make_channel(std::vector<RoundOfMessages> rounds,
                                                           ChannelNumbers& numbers) {
  const auto far = [&](std::vector<RoundOfMessages> some, int number) {
    return wire_->channel(*this, std::move(some), number);
  };
  return std::make_unique<RoutedChannel>(*this, mailboxes_, far, std::move(rounds), numbers);
}

void ProcessCommunicator::provide(size_t channels, bool rooms) {
  if (near_wire_ == nullptr && neighbours().size() < size()) return;  // no rank has neighbours
  mailboxes_->provide(channels, rooms,
                      [this](size_t bytes) { return allocate(bytes, PeerAccess::read); });
}

std::unique_ptr<Communicator> ProcessCommunicator::do_split(const std::vector<int>& members,
                                                            Group group) {
  auto part =
      wire_->part(members, fmt::format("{}: making group '{}'", who(), group.name), timeout());
  return std::unique_ptr<Communicator>(
      new ProcessCommunicator(*this, std::move(part), members, std::move(group)));
}

std::string ProcessCommunicator::alarm() {
  const std::optional<int> by = wire_->alarm();
  if (by == job_rank(rank()))
    return "this rank has given up before (its first report says why), so the job ends";
  return by ? fmt::format("rank {} of the job has given up (see its report), so the job ends", *by)
            : std::string();
}

// Checks neighbours' processes. A process that runs may have left the group: the wire knows this of
// the ranks that it is connected with, and finds it out of one rank at a time, so that a late rank
// does not cost every other one connections to all. On ranks elsewhere the wire may have news.
std::string ProcessCommunicator::lost_peer(std::span<const int> ranks) const {
  bool found_out = false;
  for (const int p : ranks) {
    const bool watched = watch_ && watch_->watches(p);
    if (watched && watch_->gone(p))
      return fmt::format("{} is gone (process {} has ended)", rank_name(p), watch_->process(p));
    const bool near = watched && neighbours().index(p) >= 0;
    if (const std::string how =
            near ? wire_->left(p, !std::exchange(found_out, true)) : wire_->lost(p);
        !how.empty())
      return fmt::format("{} is gone ({})", rank_name(p), how);
  }
  return {};
}

}  // namespace tutti::comm
