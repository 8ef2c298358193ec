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
#include "tutti/comm/spin.h"
#include "tutti/comm/tree.h"

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

uint64_t fingerprint(const CollectiveSpec& spec, const Task& task, const std::string& algorithm) {
  Fingerprint print;
  print.mix(spec.name);
  for (const uint64_t value : {static_cast<uint64_t>(spec.kind), static_cast<uint64_t>(spec.element), static_cast<uint64_t>(spec.op), static_cast<uint64_t>(spec.count),
                               static_cast<uint64_t>(spec.root), static_cast<uint64_t>(spec.chunk), static_cast<uint64_t>(spec.priority)})
    print.mix(value);
  for (const Slice& part : task.parts) print.mix(part.count);
  print.mix(static_cast<uint64_t>(spec.leaves.replicas));
  for (const int first : spec.leaves.first) print.mix(static_cast<uint64_t>(first));
  print.mix(static_cast<uint64_t>(spec.shared_output));
  print.mix(algorithm);
  return print.value();
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
  for (int p = 0; p < size_; ++p)
    if (place(p).node == place(rank_).node) {
      if (p < rank_) ++local_rank_;
      ++local_size_;
    }
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

void Communicator::agree(uint64_t fingerprint, const std::string& what) {
  const std::vector<uint64_t> prints = allgather_value(fingerprint);
  for (int p = 0; p < size_; ++p)
    if (prints[static_cast<size_t>(p)] != prints[0])
      throw CommError(fmt::format("{}: rank {} on {} plans something else than rank 0 (kind, size, type or distribution differ); "
                                  "all ranks need the same configuration and the same program", what, p, host(p)));
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
  if (!spec.leaves.one_a_rank()) task.leaves = spec.leaves;
  task.shared_output = spec.shared_output;
  if (task.parts.empty()) {
    const bool dealt = spec.kind == Collective::reduce_scatter || spec.kind == Collective::allgather || spec.kind == Collective::gather || spec.kind == Collective::scatter;
    task.parts = dealt ? equal_parts(spec.count, size_, spec.kind) : balanced_parts(spec.count, size_);
  }
  if (spec.kind == Collective::all_to_all && spec.sends.empty() && spec.receives.empty()) task.sends = task.receives = equal_parts(spec.count, size_, spec.kind);
  if (one_node()) return task;
  // Where ranks of a node are not neighbours, nothing is known that an algorithm could use.
  for (int p = 0; p < size_; ++p)
    if (p == 0 || place(p).node != place(p - 1).node) task.nodes.push_back(p);
  task.nodes.push_back(size_);
  for (size_t k = 0; k + 1 < task.nodes.size(); ++k)
    for (size_t l = 0; l < k; ++l)
      if (place(task.nodes[k]).node == place(task.nodes[l]).node) {
        task.nodes.resize(static_cast<size_t>(size_) + 1);
        for (int p = 0; p <= size_; ++p) task.nodes[static_cast<size_t>(p)] = p;
        return task;
      }
  return task;
}

std::unique_ptr<CollectiveOperation> Communicator::plan(const CollectiveSpec& spec) {
  const std::string what = spec.name.empty() ? std::string(comm::name_of(spec.kind)) : fmt::format("{} '{}'", comm::name_of(spec.kind), spec.name);
  const Task task = task_of(spec);
  check_task(task);
  if (reduces(spec.kind) && !has_arithmetic(spec.element)) throw CommError(fmt::format("{}: bytes can be moved, but not reduced", what));
  if (!spec.rebindable) check_buffers(what, task, spec.input, spec.output);
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
  part.progress_ = progress_;
}

void Communicator::set_progress(std::shared_ptr<Progress> progress) {
  CHECK(progress_->empty(), "operations are in flight");
  if (const std::string refusal = progress_refusal(); progress->threads() > 0 && !refusal.empty()) throw CommError("no progress threads: " + refusal);
  progress_ = std::move(progress);
}

void Communicator::wait_for(const std::function<bool()>& done, const std::function<Pending()>& pending, double grace) {
  const auto begin = Clock::now();
  const std::time_t since = std::time(nullptr);
  const std::chrono::nanoseconds spin = local_size_ > cores() ? kSpinSharing : kSpinAlone;
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
    progress_->pass();
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
