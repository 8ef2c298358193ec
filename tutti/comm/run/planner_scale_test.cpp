// The demands of the planner on one rank among thousands, by the built-in table: messages,
// requests, memory, mappings and control messages, as functions of the number of ranks.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>

#include "tutti/base/error.h"
#include "tutti/comm/communicator.h"
#include "tutti/comm/transport/routed_channel.h"

namespace tutti::comm {
namespace {

// Requests since the rank was made.
struct Demand {
  size_t inside = 0, between = 0;  // messages of one start, to neighbours and to other nodes
  size_t windows = 0, bytes = 0;   // windows of shared memory, and their bytes
  size_t combines = 0;             // control messages up and down the tree
};

// A channel whose messages are never sent.
class CountedChannel final : public Channel {
 public:
  void post(size_t) override {}
  void rebind(std::vector<RoundOfMessages>) override {}
  bool received() override { return true; }
  const std::byte* where(size_t) const override { return nullptr; }
  void release() override {}
  bool sent() override { return true; }
  size_t leaving() override { return 0; }
  Missing missing() const override { return {}; }
};

// A window in which every neighbour's part is the same memory.
class CountedWindow final : public Window {
 public:
  using Memory = std::unique_ptr<std::byte[], void (*)(void*)>;
  CountedWindow(int rank, std::shared_ptr<const Neighbours> neighbours, size_t bytes)
      : CountedWindow(rank, std::move(neighbours), bytes,
                      Memory(static_cast<std::byte*>(std::calloc(bytes + 1, 1)), std::free)) {}

 private:
  CountedWindow(int rank, const std::shared_ptr<const Neighbours>& neighbours, size_t bytes,
                Memory memory)
      : Window(
            rank, neighbours,
            std::vector(static_cast<size_t>(neighbours->size()), std::span(memory.get(), bytes))),
        memory_(std::move(memory)) {}
  Memory memory_;
};

// One rank of a job whose others agree to everything: it plans as it would among them.
class OneOfMany final : public Communicator {
 public:
  OneOfMany(int rank, int ranks, int node_size) : Communicator(rank, ranks) {
    std::vector<Place> places(static_cast<size_t>(ranks));
    for (int p = 0; p < ranks; ++p) {
      const int node = p / node_size;
      places[static_cast<size_t>(p)] = {.host = {}, .node = node, .kernel = node, .memory = node};
    }
    set_places(std::move(places));
    mailboxes_ = std::make_shared<Mailboxes>(neighbours().size(), neighbours().index(rank),
                                             std::make_shared<WindowRegistry>(false));
  }
  const Demand& demand() const { return demand_; }

  std::string transport() const override { return "nothing"; }
  std::unique_ptr<Window> allocate(size_t bytes, PeerAccess) override {
    ++demand_.windows;
    demand_.bytes += bytes;
    return std::make_unique<CountedWindow>(rank(), places().neighbours(), bytes);
  }
  std::unique_ptr<Window> allocate_once(size_t bytes, std::span<const Slice>) override {
    return allocate(bytes, PeerAccess::write);
  }
  [[noreturn]] void abort(int, const std::string& message) override { throw CommError(message); }

 protected:
  void do_allgather(Control, std::span<const std::byte>, std::span<std::byte>) override {
    throw InternalError("a table of all ranks");
  }
  // A pair of sums over ranks holds the blocks sent and received: equal when all ranks have added.
  void do_combine(std::span<std::byte> value, const Fold& fold) override {
    ++demand_.combines;
    if (value.size() != 2 * sizeof(uint64_t)) return;
    std::array<std::byte, 2 * sizeof(uint64_t)> theirs{};
    std::ranges::rotate_copy(value, value.begin() + sizeof(uint64_t), theirs.begin());
    fold(value.data(), theirs.data());
  }
  void do_broadcast(std::span<std::byte>, int) override {}
  std::unique_ptr<Wire::Messages> messages() override { return nullptr; }
  std::unique_ptr<Wire::Inbox> inbox(size_t, int) override { return nullptr; }
  std::unique_ptr<Communicator> do_split(const std::vector<int>&, Group) override {
    return nullptr;
  }
  std::string lost_peer(std::span<const int>) const override { return {}; }
  size_t lacking() const override { return mailboxes_->lacking(); }
  void provide(size_t channels, bool rooms) override {
    mailboxes_->provide(channels, rooms,
                        [this](size_t bytes) { return allocate(bytes, PeerAccess::read); });
  }
  std::unique_ptr<Channel> make_channel(std::vector<RoundOfMessages> rounds,
                                        ChannelNumbers& numbers) override {
    for (const RoundOfMessages& round : rounds)
      for (const auto* items : {&round.receives, &round.sends})
        for (const auto& item : *items)
          ++(neighbours().index(item.peer) >= 0 ? demand_.inside : demand_.between);
    const auto far = [](std::vector<RoundOfMessages>, int) {
      return std::make_unique<CountedChannel>();
    };
    return std::make_unique<RoutedChannel>(*this, mailboxes_, far, std::move(rounds), numbers);
  }

 private:
  Demand demand_;
  std::shared_ptr<Mailboxes> mailboxes_;
};

CollectiveSpec spec_of(Collective kind, int ranks, size_t count, bool reproducible) {
  CollectiveSpec spec{
      .kind = kind, .element = Element::f32, .rebindable = true, .reproducible = reproducible};
  if (kind == Collective::barrier) return spec;
  spec.count = kind == Collective::all_to_all
                   ? (count + static_cast<size_t>(ranks) - 1) / static_cast<size_t>(ranks) *
                         static_cast<size_t>(ranks)
                   : count;
  if (has_parts(kind)) spec.parts = balanced_parts(count, ranks);
  return spec;
}

struct PricedMachine {
  int ranks, node_size;
  int nodes() const { return (ranks + node_size - 1) / node_size; }
};

double levels(int n) { return std::bit_width(static_cast<unsigned>(n) - 1U); }

// Whether reduce_scatter and allgather go in rows: many equal nodes, each of which may add all.
bool planned_in_rows(const PricedMachine& machine, const CollectiveSpec& spec) {
  const bool scatter = spec.kind == Collective::reduce_scatter;
  return (scatter || spec.kind == Collective::allgather) && machine.nodes() > 64 &&
         machine.ranks % machine.node_size == 0 &&
         (!scatter || !spec.reproducible ||
          std::has_single_bit(static_cast<unsigned>(machine.node_size)));
}

// Most messages to and from other nodes in one start: few rounds of one each, with two exceptions.
// Where two levels do not go in rows, a rank has one message for each node, and one for each rank
// that it works for, times the sums that the order leaves on a node. The other exception is blocks
// that all ranks have for all others.
double most_between(const PricedMachine& machine, int rank, const CollectiveSpec& spec,
                    const std::string& algorithm) {
  const int first = rank / machine.node_size * machine.node_size;
  const int on_node = std::min(machine.node_size, machine.ranks - first);
  const double direct = machine.nodes() + double(machine.ranks) / on_node;
  const double sums = spec.reproducible ? 2 * levels(machine.node_size) + 1 : 1;
  if (algorithm == "pairwise") return 2.0 * machine.ranks;
  if (algorithm == "two_level" && spec.kind == Collective::all_to_all) return 2 * direct;
  if (algorithm == "two_level" && planned_in_rows(machine, spec))
    return 4 * levels(machine.nodes()) + 8;
  if (algorithm == "two_level" && machine.nodes() <= 512) return 2 * sums * direct;
  return 4 * levels(machine.ranks) + 8;
}

void expect_little(const PricedMachine& machine, int rank, const CollectiveSpec& spec) {
  OneOfMany one(rank, machine.ranks, machine.node_size);
  const auto plan = one.plan(spec);
  SCOPED_TRACE(fmt::format("{} of {} by {}, rank {} of {}, {} a node{}", name_of(spec.kind),
                           spec.count, plan->algorithm(), rank, machine.ranks, machine.node_size,
                           spec.reproducible ? ", in order" : ""));
  const Demand& demand = one.demand();
  const auto pieces = static_cast<double>(plan->chunks());
  // Only blocks of a kibibyte and more are worth a message to every rank.
  const bool large =
      spec.count * sizeof(float) >= size_t{1024} * static_cast<size_t>(machine.ranks);
  EXPECT_TRUE(plan->algorithm() != "pairwise" || machine.ranks <= 64 ||
              (spec.kind == Collective::all_to_all && large));
  EXPECT_LE(pieces, 32);
  EXPECT_LE(double(demand.between), pieces * most_between(machine, rank, spec, plan->algorithm()));
  EXPECT_LE(double(demand.inside), pieces * (4 * levels(machine.ranks) +
                                             8.0 * machine.node_size * levels(machine.node_size)));
  // Elements of a piece; a part has 16 elements where there are fewer than that for each rank.
  const auto vector =
      static_cast<double>(spec.count) + 16.0 * (machine.node_size + std::min(512, machine.nodes()));
  const Schedule& schedule = plan->schedule();
  EXPECT_LE(double(schedule.staging + schedule.accumulator), 4 * vector);
  EXPECT_LE(demand.windows, 2u) << "mailboxes, and room for copies";
  const double boxes = 64.0 * machine.node_size * sizeof(Mailbox), room = 64 << 10;
  EXPECT_LE(double(demand.bytes), boxes + 2 * room + 4 * sizeof(float) * vector);
  EXPECT_LE(demand.combines, 2u);
}

TEST(PlannerAtScale, ARanksShareGrowsWithTheLogarithmAndTheNodes) {
  for (const int node_size : {1, 3, 8, 56})
    for (const int ranks : {64, 1000, 3000, 16384})
      for (const bool reproducible : {false, true})
        for (const size_t count : {size_t{256}, size_t{64} << 10, size_t{4} << 20})
          for (int kind = 0; kind < kCollectives; ++kind)
            for (const int rank : {0, ranks / 2, ranks - 1})
              expect_little({ranks, node_size}, rank,
                            spec_of(Collective(kind), ranks, count, reproducible));
}

// Each window is a mapping of every neighbour's part, and a descriptor while it is made.
TEST(PlannerAtScale, ManyPlansOnAFatNodeNeedFewMappings) {
  OneOfMany rank(5, 128, 128);
  std::vector<std::unique_ptr<CollectiveOperation>> plans;
  while (plans.size() < 1000)
    plans.push_back(rank.plan(spec_of(Collective::allreduce, 128, 1000, true)));
  EXPECT_LE(rank.demand().windows, 1000u / 64 + 1 + 10);
  EXPECT_LE(rank.demand().combines, 1000u + 10);
}

}  // namespace
}  // namespace tutti::comm
