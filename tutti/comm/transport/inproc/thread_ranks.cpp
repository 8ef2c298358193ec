#include "tutti/comm/transport/inproc/thread_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/base/process_state.h"
#include "tutti/comm/control/control_tree.h"
#include "tutti/comm/transport/inproc/post_office.h"
#include "tutti/comm/transport/routed_channel.h"
#include "tutti/comm/transport/shm/shared_channel.h"
#include "tutti/comm/transport/wire.h"
#include "tutti/device/cpu/buffer.h"

namespace tutti::comm {
namespace {

/// Zeros that are not touched yet, aligned to 128 bytes: two cache lines.
struct AlignedMemory {
  static constexpr size_t kAlignment = 128;

  explicit AlignedMemory(size_t size)
      : bytes(size), memory(size + kAlignment),
        data(memory.data() +
             (kAlignment - reinterpret_cast<uintptr_t>(memory.data()) % kAlignment) % kAlignment) {}
  AlignedMemory(const AlignedMemory&) = delete;
  AlignedMemory& operator=(const AlignedMemory&) = delete;
  size_t bytes;
  device::Buffer memory;
  std::byte* data;
};

// Holds shared pointers, because a peer may go on reading after the owner has let its handle go.
class ThreadWindow final : public Window {
 public:
  ThreadWindow(int rank, std::shared_ptr<const Neighbours> neighbours,
               std::vector<std::shared_ptr<AlignedMemory>> memory)
      : Window(rank, std::move(neighbours), spans(memory)), memory_(std::move(memory)) {}

 private:
  static std::vector<std::span<std::byte>> spans(
      const std::vector<std::shared_ptr<AlignedMemory>>& memory) {
    std::vector<std::span<std::byte>> all;
    for (const auto& m : memory) all.emplace_back(m->data, m->bytes);
    return all;
  }
  std::vector<std::shared_ptr<AlignedMemory>> memory_;
};

// The first failure of a rank: one for a world and all worlds split from it.
class Failure {
 public:
  void set(int rank, const std::string& how) {
    const std::lock_guard lock(mutex_);
    if (happened()) return;
    text_ = fmt::format("rank {} failed: {}", rank, how);
    exception_ = std::current_exception();
    happened_.store(true, std::memory_order_release);
  }
  bool happened() const { return happened_.load(std::memory_order_acquire); }
  std::string text() const { return happened() ? text_ : ""; }
  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> happened_{false};
  std::string text_;
  std::exception_ptr exception_;
};

// The state that ranks share: for each rank, its current collective and the address of its bytes.
struct World {
  struct Entry {
    alignas(128) std::atomic<uint64_t> arrived{0};
    std::atomic<uint32_t> kind{
        0};  // atomics, because a rank that reports a disagreement may read while another moves on
    std::atomic<size_t> bytes{0};
    std::atomic<std::byte*> data{nullptr};
    alignas(128) std::atomic<uint64_t> finished{0};
  };
  World(int ranks, std::shared_ptr<Failure> failure)
      : entries(static_cast<size_t>(ranks)), allocations(static_cast<size_t>(ranks)),
        parts(static_cast<size_t>(ranks)), failure(std::move(failure)) {}

  std::vector<Entry> entries;
  std::vector<std::shared_ptr<AlignedMemory>> allocations;
  std::vector<std::shared_ptr<World>> parts;  // results of a split, at their first members
  std::shared_ptr<Failure> failure;
  PostOffice office;
};

std::shared_ptr<const Neighbours> all_ranks(int ranks) {
  std::vector<int> all(static_cast<size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return std::make_shared<const Neighbours>(std::move(all));
}

class ThreadCommunicator final : public Communicator {
 public:
  /// `nodes`: the node of each rank.
  ThreadCommunicator(std::shared_ptr<World> world, int rank, std::vector<int> nodes,
                     Group group = {})
      : Communicator(rank, static_cast<int>(world->entries.size()), std::move(group)),
        world_(std::move(world)), all_(all_ranks(size())), nodes_(std::move(nodes)) {
    std::vector<Place> places;
    for (const int node : nodes_)
      places.push_back({.host = host_name(), .node = node, .kernel = 0, .memory = node});
    set_places(std::move(places));
    const auto registry = std::make_shared<WindowRegistry>(true);
    near_ = std::make_shared<Mailboxes>(neighbours().size(), neighbours().index(rank), registry);
    far_ = std::make_shared<Mailboxes>(size(), rank, registry);
  }

  std::string transport() const override {
    return size() == 1                     ? "single rank"
           : neighbours().size() == size() ? "threads"
                                           : "threads, copied";
  }

  std::unique_ptr<Window> allocate(size_t bytes, PeerAccess) override {
    return allocate_among(places().neighbours(), bytes);
  }
  std::unique_ptr<Window> allocate_once(size_t bytes, std::span<const Slice>) override {
    return allocate_among(places().neighbours(), rank() == neighbours().first() ? bytes : 0);
  }

  void abort(int code, const std::string& message) override {
    throw CommError(fmt::format("{} (exit code {})", signed_message(message), code));
  }

 protected:
  std::unique_ptr<Communicator> do_split(const std::vector<int>& members, Group group) override {
    std::shared_ptr<World>& offer = world_->parts[static_cast<size_t>(members.front())];
    if (members.front() == rank())
      offer = std::make_shared<World>(static_cast<int>(members.size()), world_->failure);
    barrier();
    const std::shared_ptr<World> world = offer;
    // The first member lets go when the others have copied it. Where one is lost meanwhile, it
    // stays until the whole world ends.
    barrier();
    if (members.front() == rank()) offer.reset();
    std::vector<int> nodes;
    for (const int p : members) nodes.push_back(nodes_[static_cast<size_t>(p)]);
    return std::make_unique<ThreadCommunicator>(
        world, static_cast<int>(std::ranges::find(members, rank()) - members.begin()),
        std::move(nodes), std::move(group));
  }
  std::unique_ptr<Channel> make_channel(std::vector<RoundOfMessages> rounds,
                                        ChannelNumbers& numbers) override {
    const auto far = [&](std::vector<RoundOfMessages> some, int number) {
      for (RoundOfMessages& round : some) round.may_borrow = false;
      return std::make_unique<SharedChannel>(*this, *all_, far_, std::move(some), number);
    };
    return std::make_unique<RoutedChannel>(*this, near_, far, std::move(rounds), numbers);
  }
  std::unique_ptr<Wire::Messages> messages() override { return world_->office.messages(rank()); }
  std::unique_ptr<Wire::Inbox> inbox(size_t room, int tag) override {
    return world_->office.inbox(rank(), room, tag);
  }
  size_t lacking() const override { return near_->lacking() + far_->lacking(); }
  void provide(size_t channels, bool memory) override {
    near_->provide(channels, memory,
                   [this](size_t bytes) { return allocate(bytes, PeerAccess::read); });
    if (neighbours().size() < size())
      far_->provide(channels, memory, [this](size_t bytes) { return allocate_among(all_, bytes); });
  }
  void do_allgather(Control kind, std::span<const std::byte> mine,
                    std::span<std::byte> all) override {
    meet(kind, const_cast<std::byte*>(mine.data()), mine.size(), [&] {
      for (int p = 0; p < size() && !mine.empty(); ++p)
        std::memcpy(all.data() + static_cast<size_t>(p) * mine.size(), entry(p).data.load(),
                    mine.size());
    });
  }
  void do_combine(std::span<std::byte> value, const Fold& fold) override {
    std::vector<std::byte> folded;  // the others still read `value`
    meet(Control::combine, value.data(), value.size(),
         [&] { folded = fold_subtree(0, value.size(), fold); });
    std::ranges::copy(folded, value.begin());
  }
  void do_broadcast(std::span<std::byte> data, int root) override {
    meet(Control::broadcast, data.data(), data.size(), [&] {
      if (rank() != root && !data.empty())
        std::memcpy(data.data(), entry(root).data.load(), data.size());
    });
  }
  std::string lost_peer(std::span<const int>) const override { return world_->failure->text(); }

 private:
  std::unique_ptr<Window> allocate_among(const std::shared_ptr<const Neighbours>& neighbours,
                                         size_t bytes) {
    world_->allocations[static_cast<size_t>(rank())] = std::make_shared<AlignedMemory>(bytes);
    barrier();
    std::vector<std::shared_ptr<AlignedMemory>> memory;
    for (const int p : neighbours->ranks())
      memory.push_back(world_->allocations[static_cast<size_t>(p)]);
    barrier();  // before the table is written again
    return std::make_unique<ThreadWindow>(rank(), neighbours, std::move(memory));
  }

  World::Entry& entry(int rank) const { return world_->entries[static_cast<size_t>(rank)]; }

  std::vector<std::byte> fold_subtree(int rank, size_t bytes, const Fold& fold) const {
    const std::byte* const data = entry(rank).data.load();
    std::vector<std::byte> folded(data, data + bytes);
    for (const int child : ControlTree(rank, size()).children)
      fold(folded.data(), fold_subtree(child, bytes, fold).data());
    return folded;
  }

  // All ranks publish their bytes, do `copy` when all are there, and leave when all have copied.
  void meet(Control kind, std::byte* data, size_t bytes, const std::function<void()>& copy) {
    ++sequence_;
    World::Entry& mine = entry(rank());
    mine.kind.store(static_cast<uint32_t>(kind));
    mine.bytes.store(bytes);
    mine.data.store(data);
    mine.arrived.store(sequence_, std::memory_order_release);
    await(kind, &World::Entry::arrived);
    for (int p = 0; p < size(); ++p)
      if (entry(p).kind.load() != static_cast<uint32_t>(kind) || entry(p).bytes.load() != bytes)
        throw CommError(fmt::format(
            "{}: operation number {}: rank {} calls {} of {} bytes, rank {} calls {} of {} bytes",
            describe_group(), sequence_, job_rank(rank()), name_of(kind), bytes, job_rank(p),
            name_of(static_cast<Control>(entry(p).kind.load())), entry(p).bytes.load()));
    copy();
    mine.finished.store(sequence_, std::memory_order_release);
    await(kind, &World::Entry::finished);
  }

  void await(Control kind, std::atomic<uint64_t> World::Entry::*flag) {
    int there = 0;
    const auto here = [&](int p) {
      return (entry(p).*flag).load(std::memory_order_acquire) >= sequence_;
    };
    wait_for(
        [&] {
          while (there < size() && here(there)) ++there;
          return there == size();
        },
        [&] {
          Pending what{
              .operation = name_of(kind), .sequence = sequence_, .arrived = {}, .missing = {}};
          for (int p = 0; p < size(); ++p) (here(p) ? what.arrived : what.missing).push_back(p);
          return what;
        });
  }

  std::shared_ptr<World> world_;
  std::shared_ptr<const Neighbours> all_;
  std::vector<int> nodes_;                 // node of each rank
  std::shared_ptr<Mailboxes> near_, far_;  // for this node; for all ranks, in place of a network
  uint64_t sequence_ = 0;
};

}  // namespace

void run_ranks(int ranks, const std::function<void(Communicator&)>& body,
               const std::vector<int>& nodes) {
  CHECK(ranks >= 1 && (nodes.empty() || nodes.size() == static_cast<size_t>(ranks)));
  const std::vector<int> node_of =
      nodes.empty() ? std::vector<int>(static_cast<size_t>(ranks)) : nodes;
  const auto failure = std::make_shared<Failure>();
  const auto world = std::make_shared<World>(ranks, failure);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        ThreadCommunicator communicator(world, rank, node_of);
        body(communicator);
      } catch (const std::exception& error) {
        failure->set(rank, error.what());
      } catch (...) {
        failure->set(rank, "an exception of unknown type");
      }
    });
  for (std::thread& thread : threads) thread.join();
  failure->rethrow();
}

std::unique_ptr<Communicator> make_single_communicator() {
  return std::make_unique<ThreadCommunicator>(
      std::make_shared<World>(1, std::make_shared<Failure>()), 0, std::vector<int>{0});
}

}  // namespace tutti::comm
