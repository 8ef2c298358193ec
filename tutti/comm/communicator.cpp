#include "tutti/comm/communicator.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <limits>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/shm/shared_reduction.h"
#include "tutti/comm/spin.h"

namespace tutti::comm {
namespace {

using Clock = std::chrono::steady_clock;

// How long a wait spins before it offers its core to others between two looks. Where every rank has a core, long enough to cover
// the exchange of a bucket: on a busy machine a core that is given away comes back milliseconds later. Where ranks share cores, the
// one that is waited for may need this very core.
constexpr auto kSpinAlone = std::chrono::milliseconds(1);
constexpr auto kSpinSharing = std::chrono::microseconds(50);
constexpr auto kLookAtPeers = std::chrono::milliseconds(500);

// Of the node, not of this rank's binding.
int cores() {
  static const int online = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return online;
}

std::string time_of_day(std::time_t when) {
  std::tm parts{};
  localtime_r(&when, &parts);
  return fmt::format("{:02}:{:02}:{:02}", parts.tm_hour, parts.tm_min, parts.tm_sec);
}

// The sum of one rank is its own single part: nothing moves.
class LocalReduction final : public Reduction {
 public:
  LocalReduction(Communicator& communicator, const ReductionSpec& spec) : Reduction(communicator, spec) {}
  const float* result() const override { return spec().result != nullptr ? spec().result : spec().parts[0]; }
  size_t bytes_moved() const override { return 0; }

 protected:
  void begin() override {
    if (spec().result != nullptr && spec().result != spec().parts[0])
      std::memcpy(spec().result, spec().parts[0], spec().count * sizeof(float));
  }
  bool advance() override { return true; }
  Pending describe() const override { return {}; }
};

class Fingerprint {
 public:
  void mix(uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) hash_ = (hash_ ^ (value >> (8 * byte) & 0xFF)) * 1099511628211u;
  }
  void mix(const std::string& text) {
    for (const char c : text) mix(static_cast<unsigned char>(c));
    mix(text.size());
  }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 14695981039346656037u;  // FNV-1a
};

uint64_t fingerprint(const ReductionSpec& spec) {
  Fingerprint print;
  print.mix(spec.name);
  print.mix(spec.count);
  print.mix(static_cast<uint64_t>(spec.replicas));
  for (const int f : spec.first) print.mix(static_cast<uint64_t>(f));
  return print.value();
}

uint64_t fingerprint(const CollectiveSpec& spec, const Task& task, const std::string& algorithm) {
  Fingerprint print;
  print.mix(spec.name);
  for (const uint64_t value : {static_cast<uint64_t>(spec.kind), static_cast<uint64_t>(spec.element), static_cast<uint64_t>(spec.op), static_cast<uint64_t>(spec.count),
                               static_cast<uint64_t>(spec.root), static_cast<uint64_t>(spec.chunk), static_cast<uint64_t>(spec.priority)})
    print.mix(value);
  for (const Slice& part : task.parts) print.mix(part.count);
  print.mix(algorithm);
  return print.value();
}

bool overlap(const void* a, size_t a_count, const void* b, size_t b_count, size_t element_bytes) {
  const auto* const x = static_cast<const std::byte*>(a);
  const auto* const y = static_cast<const std::byte*>(b);
  return a_count > 0 && b_count > 0 && x < y + b_count * element_bytes && y < x + a_count * element_bytes;
}

std::vector<Slice> equal_parts(size_t count, int parts, Collective kind) {
  const auto n = static_cast<size_t>(parts);
  if (count % n != 0) throw CommError(fmt::format("{}: {} elements cannot be dealt out equally to {} ranks: give the parts", name_of(kind), count, parts));
  std::vector<Slice> all;
  for (size_t p = 0; p < n; ++p) all.push_back({p * (count / n), count / n});
  return all;
}

}  // namespace

Communicator::~Communicator() = default;

void Communicator::set_places(std::vector<Place> places) {
  CHECK(places.size() == static_cast<size_t>(size_));
  places_ = std::move(places);
  local_rank_ = local_size_ = 0;
  sharing_ = static_cast<int>(std::ranges::count(places_, place(rank_).kernel, &Place::kernel));
  for (int p = 0; p < size_; ++p)
    if (place(p).node == place(rank_).node) {
      if (p < rank_) ++local_rank_;
      ++local_size_;
    }
}

std::vector<int> Communicator::nodes() const {
  std::vector<int> first, every;
  if (one_node()) return first;
  for (int p = 0; p < size_; ++p) {
    every.push_back(p);
    if (p == 0 || place(p).node != place(p - 1).node) first.push_back(p);
  }
  std::vector<int> names;
  for (const int p : first) names.push_back(place(p).node);
  std::ranges::sort(names);
  std::vector<int>& found = std::ranges::adjacent_find(names) == names.end() ? first : every;
  found.push_back(size_);
  return found;
}

std::string Communicator::who() const { return fmt::format("rank {}/{} on {}", rank_, size_, host()); }

std::string Communicator::signed_message(const std::string& message) const {
  return message.starts_with(who()) ? message : who() + ": " + message;
}

const char* Communicator::name_of(Control kind) {
  switch (kind) {
    case Control::barrier: return "barrier";
    case Control::broadcast: return "broadcast";
    case Control::allgather: return "allgather";
  }
  return "unknown operation";
}

void Communicator::barrier() { gather_all(Control::barrier, {}, {}); }

void Communicator::broadcast(std::span<std::byte> data, int root) {
  CHECK(0 <= root && root < size_, "root {} of {}", root, size_);
  if (size_ > 1) spread(data, root);
}

void Communicator::allgather(std::span<const std::byte> mine, std::span<std::byte> all) {
  CHECK(all.size() == mine.size() * static_cast<size_t>(size_), "{} bytes of room for {} x {}", all.size(), size_, mine.size());
  gather_all(Control::allgather, mine, all);
}

void Communicator::sum(std::span<double> values) {
  if (size_ == 1) return;
  const size_t n = values.size();
  std::vector<double> all(n * static_cast<size_t>(size_));
  allgather(std::as_bytes(values), std::as_writable_bytes(std::span(all)));
  const TreeSum tree(size_, all_parts(size_, first_replicas(size_, size_)));
  std::vector<double> column(static_cast<size_t>(size_));
  for (size_t i = 0; i < n; ++i) {
    for (size_t p = 0; p < column.size(); ++p) column[p] = all[p * n + i];
    values[i] = tree.evaluate(column);
  }
}

void Communicator::check_spec(const ReductionSpec& spec) const {
  CHECK(spec.count <= static_cast<size_t>(std::numeric_limits<int>::max()) / 2, "bucket '{}' of {} floats is too large", spec.name, spec.count);
  CHECK(spec.window != nullptr, "reduction '{}' has no window", spec.name);
  CHECK(spec.first.size() == static_cast<size_t>(size_) + 1 && spec.first.front() == 0 && spec.first.back() == spec.replicas,
        "reduction '{}': the table of first replicas does not cover {} replicas on {} ranks", spec.name, spec.replicas, size_);
  const auto mine = static_cast<size_t>(rank_);
  const size_t parts = maximal_subtrees(spec.replicas, {spec.first[mine], spec.first[mine + 1]}).size();
  CHECK(spec.parts.size() == parts, "reduction '{}': {} parts given, the range has {}", spec.name, spec.parts.size(), parts);
  for (const float* part : spec.parts)
    CHECK(spec.window->contains(part, spec.count * sizeof(float)), "reduction '{}': a part lies outside its window", spec.name);
}

void Communicator::agree(uint64_t fingerprint, const std::string& what) {
  const std::vector<uint64_t> prints = allgather_value(fingerprint);
  for (int p = 0; p < size_; ++p)
    if (prints[static_cast<size_t>(p)] != prints[0])
      throw CommError(fmt::format("{}: rank {} on {} plans something else than rank 0 (kind, size, type or distribution differ); "
                                  "all ranks need the same configuration and the same program", what, p, host(p)));
}

std::unique_ptr<Reduction> Communicator::plan_reduction(const ReductionSpec& spec) {
  check_spec(spec);
  if (size_ == 1) return std::make_unique<LocalReduction>(*this, spec);
  agree(fingerprint(spec), fmt::format("reduction '{}'", spec.name));
  if (spec.window->shared()) return std::make_unique<SharedReduction>(*this, spec);
  return make_reduction(spec);
}

Task Communicator::task_of(const CollectiveSpec& spec) const {
  Task task;
  task.kind = spec.kind;
  task.rank = rank_;
  task.ranks = size_;
  task.root = spec.root;
  task.count = spec.count;
  task.parts = spec.parts;
  task.sends = spec.sends;
  task.receives = spec.receives;
  task.wide = accumulator_of(spec.element, spec.op) != spec.element;
  task.mean = spec.op == ReduceOp::mean;
  if (task.parts.empty()) {
    const bool dealt = spec.kind == Collective::reduce_scatter || spec.kind == Collective::allgather || spec.kind == Collective::gather || spec.kind == Collective::scatter;
    task.parts = dealt ? equal_parts(spec.count, size_, spec.kind) : balanced_parts(spec.count, size_);
  }
  if (spec.kind == Collective::all_to_all && spec.sends.empty() && spec.receives.empty()) task.sends = task.receives = equal_parts(spec.count, size_, spec.kind);
  task.nodes = nodes();
  return task;
}

std::unique_ptr<CollectiveOperation> Communicator::plan(const CollectiveSpec& spec) {
  const std::string what = spec.name.empty() ? std::string(comm::name_of(spec.kind)) : fmt::format("{} '{}'", comm::name_of(spec.kind), spec.name);
  const Task task = task_of(spec);
  check_task(task);
  if (reduces(spec.kind) && !has_arithmetic(spec.element)) throw CommError(fmt::format("{}: bytes can be moved, but not reduced", what));
  const Extent extent = extent_of(task);
  const bool input_is_output = spec.kind == Collective::broadcast || spec.kind == Collective::reduce || spec.kind == Collective::allreduce;
  if (extent.output > 0 && spec.output == nullptr) throw CommError(fmt::format("{}: no output on rank {}, which receives {} elements", what, rank_, extent.output));
  if (extent.input > 0 && spec.input == nullptr && (!input_is_output || spec.output == nullptr))
    throw CommError(fmt::format("{}: no input on rank {}, which gives {} elements", what, rank_, extent.input));
  if (spec.kind == Collective::all_to_all && overlap(spec.input, extent.input, spec.output, extent.output, size_of(spec.element)))
    throw CommError(fmt::format("{}: input and output overlap on rank {}: a block would arrive where another one has yet to leave", what, rank_));
  const std::string algorithm = spec.algorithm.empty() ? selection_.choose(task, size_of(spec.element), spec.reproducible) : spec.algorithm;
  if (spec.reproducible && !algorithm_named(algorithm).reproducible(task))
    throw CommError(fmt::format("{}: {} does not add in the order of the tree among {} ranks", what, algorithm, size_));
  agree(fingerprint(spec, task, algorithm), what);
  return std::make_unique<CollectiveOperation>(*this, spec, task, algorithm);
}

std::unique_ptr<Channel> Communicator::open_channel(std::vector<RoundOfMessages> rounds) {
  if (!link_) return make_channel(std::move(rounds));
  auto inner = make_channel(rounds);
  return std::make_unique<ShapedChannel>(*this, std::move(inner), rounds, *link_);
}

void Communicator::inherit(Communicator& part) const {
  part.timeout_ = timeout_;
  part.selection_ = selection_;
  part.link_ = link_;
}

bool Communicator::more_urgent_than(const Operation& operation) const {
  return std::ranges::any_of(in_flight_, [&](const Operation* other) { return other->priority() > operation.priority(); });
}

void Communicator::progress() {
  // test() takes a finished operation off the list, so the index moves only past unfinished ones.
  for (size_t i = 0; i < in_flight_.size();)
    if (!in_flight_[i]->test()) ++i;
}

void Communicator::wait_for(const std::function<bool()>& done, const std::function<Pending()>& pending, double grace) {
  const auto begin = Clock::now();
  const std::time_t since = std::time(nullptr);
  const std::chrono::nanoseconds spin = sharing_ > cores() ? kSpinSharing : kSpinAlone;
  auto next_look = begin + kLookAtPeers;
  const auto fail = [&](const Pending& what, const std::string& how) {
    std::string missing;
    for (const int p : what.missing) missing += fmt::format("{}rank {} on {}", missing.empty() ? "" : ", ", p, host(p));
    throw CommError(fmt::format("{}: {} number {}: {}; waiting since {}; arrived: {}; not arrived: {}", who(), what.operation, what.sequence, how, time_of_day(since),
                                what.arrived.empty() ? "none" : (what.arrived.size() > 1 ? "ranks " : "rank ") + rank_list(what.arrived), missing.empty() ? "none" : missing));
  };
  for (;;) {
    for (int i = 0; i < 32; ++i) {
      if (done()) return;
      spin_pause();
    }
    progress();
    const auto now = Clock::now();
    if (now - begin > spin) std::this_thread::yield();
    if (now >= next_look) {
      next_look = now + kLookAtPeers;
      if (!lost_peer(pending().missing).empty()) {
        // It may have done its share and left between the two questions; what it did is visible now if so.
        if (done()) return;
        const Pending what = pending();
        if (const std::string lost = lost_peer(what.missing); !lost.empty()) fail(what, lost);
      }
    }
    if (std::chrono::duration<double>(now - begin).count() > timeout_ + grace)
      fail(pending(), fmt::format("no answer within {:g} s (a rank that is slow, stuck, or was started with another configuration)", timeout_ + grace));
  }
}

std::string rank_list(std::span<const int> ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t j = i;
    while (j + 1 < ranks.size() && ranks[j + 1] == ranks[j] + 1) ++j;
    text += text.empty() ? "" : ", ";
    text += j > i ? fmt::format("{}-{}", ranks[i], ranks[j]) : fmt::format("{}", ranks[i]);
    i = j + 1;
  }
  return text;
}

}  // namespace tutti::comm
