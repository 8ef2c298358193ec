#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>
#include <tuple>

#include "tests/multirank/matrix_cases.h"
#include "tutti/base/numeric/hash.h"
#include "tutti/comm/algorithm/algorithm.h"

namespace tutti {
namespace {

using comm::Collective;
using comm::Slice;

constexpr size_t kGuard = 64;    // bytes behind the output
constexpr size_t kLarge = 1000;  // elements: above it, answers are cached and ways alternate
constexpr std::byte kUnwritten{0x5A};

bool dealt(Collective kind) {
  return kind == Collective::reduce_scatter || kind == Collective::allgather ||
         kind == Collective::gather || kind == Collective::scatter;
}
bool rooted(Collective kind) {
  return kind == Collective::broadcast || kind == Collective::reduce ||
         kind == Collective::gather || kind == Collective::scatter;
}
bool can_be_cut(Collective kind) {
  return kind == Collective::broadcast || kind == Collective::reduce ||
         kind == Collective::allreduce;
}

std::vector<Slice> parts_of(Deal deal, size_t count, int ranks) {
  const auto n = static_cast<size_t>(ranks);
  const auto bound = [&](size_t p) {
    switch (deal) {
      case Deal::equal: return count * p / n;
      case Deal::uneven: return count * p * (p + 1) / (n * (n + 1));
      case Deal::sparse: return n == 1 ? count * p : count * (p / 2) / (n / 2);
    }
    return size_t{0};
  };
  std::vector<Slice> parts;
  for (size_t p = 0; p < n; ++p) parts.push_back({bound(p), bound(p + 1) - bound(p)});
  return parts;
}

// For all_to_all. Unequal blocks are none, one or two times the block, so that neither rows nor
// columns are equal.
size_t block_of(const Collected& what, int from, int to, int ranks) {
  const size_t block = what.count / static_cast<size_t>(ranks) +
                       (what.deal == Deal::equal || what.count == 0 ? 0 : 1);
  return what.deal == Deal::equal ? block : block * static_cast<size_t>((from + 2 * to) % 3);
}

size_t block_begin(const Collected& what, int from, int to, int ranks) {
  size_t begin = 0;
  for (int q = 0; q < to; ++q) begin += block_of(what, from, q, ranks);
  return begin;
}

comm::Task task_of(const Collected& what, int rank, int ranks) {
  comm::Task task;
  task.kind = what.kind, task.rank = rank, task.ranks = ranks, task.root = what.root,
  task.count = what.count;
  if (dealt(what.kind)) task.parts = parts_of(what.deal, what.count, ranks);
  if (what.kind != Collective::all_to_all) return task;
  size_t received = 0;
  for (int q = 0; q < ranks; ++q) {
    task.sends.push_back({block_begin(what, rank, q, ranks), block_of(what, rank, q, ranks)});
    task.receives.push_back({received, block_of(what, q, rank, ranks)});
    received += task.receives.back().count;
  }
  return task;
}

// Caches the last few reduced vectors: all algorithms and all ranks need the same one, and
// computing it costs ranks times the vector.
class ReducedVectors {
 public:
  using Vector = std::shared_ptr<const std::vector<std::byte>>;

  Vector get(const Collected& what, int ranks, uint64_t seed) {
    const Key key{what.element, what.op, what.count, ranks, seed};
    const std::lock_guard lock(mutex_);
    for (const auto& [known, vector] : known_)
      if (known == key) return vector;
    comm::Task task;
    task.kind = Collective::allreduce, task.ranks = ranks, task.count = what.count;
    auto vector =
        std::make_shared<std::vector<std::byte>>(what.count * comm::size_of(what.element));
    comm::ReferenceResult(task, what.element, what.op, seed).write_right(vector->data());
    if (known_.size() == kKept) known_.pop_front();
    known_.emplace_back(key, vector);
    return vector;
  }

 private:
  using Key = std::tuple<comm::Element, comm::ReduceOp, size_t, int, uint64_t>;
  static constexpr size_t kKept = 4;
  std::mutex mutex_;
  std::deque<std::pair<Key, Vector>> known_;
};

std::vector<int> roots_of(Collective kind, int ranks) {
  if (!rooted(kind) || ranks == 1) return {0};
  return ranks == 2 ? std::vector{0, 1} : std::vector{0, ranks / 2, ranks - 1};
}

// Whether algorithms treat it differently: types and reductions matter to them only by whether the
// accumulator is wider, and whether a mean is taken at the end.
bool treated_differently(const Collected& what) {
  return (what.element == comm::Element::f32 || what.element == comm::Element::bf16) &&
         (what.op == comm::ReduceOp::sum || what.op == comm::ReduceOp::mean);
}

// Adds the ways in which a collective can be run. `only_equal`: the algorithm needs equal blocks.
void add_variants(std::vector<Collected>& all, const Collected& what, const MatrixAxes& axes,
                  bool only_equal) {
  std::vector<Collected> ways;
  const bool has_deals = dealt(what.kind) || what.kind == Collective::all_to_all;
  for (const int root : roots_of(what.kind, axes.ranks))
    for (const Deal deal : {Deal::equal, Deal::uneven, Deal::sparse})
      for (const bool in_place : {false, true})
        for (const bool window : {false, true})
          for (const size_t chunk : {size_t{0}, what.count / 3}) {
            if (deal != Deal::equal && (!has_deals || only_equal)) continue;
            if (deal == Deal::sparse && what.kind == Collective::all_to_all) continue;
            if (in_place &&
                (what.kind == Collective::barrier || what.kind == Collective::all_to_all))
              continue;
            if (window && (!axes.windows || what.kind == Collective::barrier)) continue;
            if (chunk != 0 && (!can_be_cut(what.kind) || chunk < 16)) continue;
            Collected way = what;
            way.root = root, way.deal = deal, way.in_place = in_place, way.window = window,
            way.chunk = chunk;
            if (ways.empty() || way.name() != ways.back().name()) ways.push_back(way);
          }
  for (size_t i = 0, fixed = ways.size(); i < fixed; ++i) {
    if (ways[i].window || ways[i].deal != Deal::equal || ways[i].root != 0 ||
        what.kind == Collective::barrier)
      continue;
    ways.push_back(ways[i]);
    ways.back().moving = true;
  }
  if (what.count < kLarge && treated_differently(what))
    all.insert(all.end(), ways.begin(), ways.end());
  else
    all.push_back(ways[fnv1a(what.name()) % ways.size()]);
}

}  // namespace

std::string Collected::name() const {
  static constexpr const char* kDeals[] = {"", " uneven", " sparse"};
  std::string text =
      fmt::format("{} {} {}", comm::name_of(kind), algorithm, comm::name_of(element));
  if (comm::reduces(kind)) text += fmt::format(" {}", comm::name_of(op));
  text += fmt::format(" count {}", count);
  if (rooted(kind)) text += fmt::format(" root {}", root);
  text += kDeals[static_cast<size_t>(deal)];
  if (in_place) text += " in place";
  if (window) text += " window";
  if (moving) text += " moving";
  if (chunk != 0) text += fmt::format(" chunk {}", chunk);
  return text;
}

// Input, output and a guard lie in one piece of memory; in place, the shorter inside the longer.
Trial::Trial(comm::Communicator& communicator, const Collected& what)
    : what_(what), task_(task_of(what, communicator.rank(), communicator.size())) {
  const size_t bytes = comm::size_of(what.element);
  const comm::Extent extent = comm::extent_of(task_);
  input_bytes_ = extent.input * bytes, output_bytes_ = extent.output * bytes;
  const bool root = task_.rank == task_.root;
  if (what.in_place) {
    if (what.kind == Collective::allgather || (what.kind == Collective::gather && root))
      input_begin_ = task_.part().begin * bytes;
    if (what.kind == Collective::scatter && root) output_begin_ = task_.part().begin * bytes;
  } else {
    output_begin_ = (input_bytes_ + kGuard) / kGuard * kGuard;
  }
  const size_t total =
      std::max(input_begin_ + input_bytes_, output_begin_ + output_bytes_) + kGuard;
  if (what.window || what.moving) window_ = communicator.allocate(total);
  if (!what.window || what.moving) own_ = std::make_unique_for_overwrite<std::byte[]>(total);
  memory_ = what.window ? window_->data() : own_.get();
  for (int p = 0; p < task_.ranks && what.kind == Collective::all_to_all; ++p)
    sources_.push_back(block_begin(what, p, task_.rank, task_.ranks));

  comm::CollectiveSpec spec{.kind = what.kind,
                            .element = what.element,
                            .op = what.op,
                            .count = what.count,
                            .root = what.root};
  spec.parts = task_.parts, spec.sends = task_.sends, spec.receives = task_.receives;
  if (what.kind == Collective::all_to_all && what.deal == Deal::equal) {
    spec.count = block_of(what, 0, 0, task_.ranks) * static_cast<size_t>(task_.ranks);
    spec.sends.clear(), spec.receives.clear();
  }
  spec.algorithm = what.algorithm;
  spec.chunk = what.chunk;
  spec.priority = what.priority;
  // Ranks that send or receive nothing name no buffer; in place, one buffer is named as the output.
  output_only_ = what.in_place && can_be_cut(what.kind);
  spec.rebindable = what.moving;
  if (!what.moving && extent.input > 0 && !output_only_) spec.input = input();
  if (!what.moving && (extent.output > 0 || output_only_)) spec.output = output();
  operation_ = communicator.plan(spec);
}

size_t run_trial(comm::Communicator& c, const Collected& what, int starts) {
  Trial trial(c, what);
  size_t wrong = 0;
  for (int start = 0; start < starts; ++start) {
    trial.fill(static_cast<uint64_t>(start));
    trial.operation().run();
    wrong += trial.wrong();
  }
  return wrong;
}

comm::ReferenceResult Trial::answer(uint64_t seed) const {
  return {task_, what_.element, what_.op, seed, sources_};
}

void Trial::fill(uint64_t seed) {
  seed_ = seed;
  if (what_.moving) {
    // One start of three has its buffers elsewhere, and not the same one on all ranks.
    memory_ = (seed + static_cast<uint64_t>(task_.rank)) % 3 == 0 ? own_.get() : window_->data();
    operation_->rebind(input_bytes_ > 0 && !output_only_ ? input() : nullptr,
                       output_bytes_ > 0 || output_only_ ? output() : nullptr);
  }
  std::memset(output(), static_cast<int>(kUnwritten), output_bytes_ + kGuard);
  answer(seed).fill(input());
}

size_t Trial::count_wrong() const {
  if (what_.count < kLarge || !comm::reduces(what_.kind) || output_bytes_ == 0)
    return answer(seed_).count_wrong(output());
  static ReducedVectors vectors;
  const size_t begin = what_.kind == Collective::reduce_scatter
                           ? task_.part().begin * comm::size_of(what_.element)
                           : 0;
  const bool right = std::memcmp(output(), vectors.get(what_, task_.ranks, seed_)->data() + begin,
                                 output_bytes_) == 0;
  return right ? 0 : answer(seed_).count_wrong(output());
}

size_t Trial::wrong() const {
  size_t wrong = count_wrong();
  // The longer of two overlapping buffers keeps the rest of its content.
  const size_t end =
      std::max(output_begin_ + output_bytes_, what_.in_place ? input_begin_ + input_bytes_ : 0);
  if (end == output_begin_ + output_bytes_)
    for (size_t i = end; i < end + kGuard; ++i) wrong += memory_[i] == kUnwritten ? 0 : 1;
  if (what_.in_place) return wrong;
  std::vector<std::byte> given(input_bytes_);
  answer(seed_).fill(given.data());
  return wrong +
         (input_bytes_ > 0 && std::memcmp(input(), given.data(), input_bytes_) != 0 ? 1 : 0);
}

std::vector<Collected> product_of(const MatrixAxes& axes) {
  std::vector<Collected> all;
  const auto add = [&](Collected what, const comm::Algorithm& algorithm) {
    comm::Task task;
    task.kind = what.kind, task.ranks = axes.ranks, task.node_of = axes.node_of;
    task.equal_blocks = true;
    if (!algorithm.refusal(task).empty()) return;
    task.equal_blocks = false;
    const bool only_equal = !algorithm.refusal(task).empty();
    if (comm::reduces(what.kind) ? !comm::has_arithmetic(what.element)
                                 : what.op != comm::ReduceOp::sum)
      return;
    if (what.kind == Collective::barrier &&
        (what.count != axes.counts.front() || what.element != axes.elements.front()))
      return;
    if (what.kind == Collective::barrier) what.count = 0;
    what.algorithm = algorithm.name;
    add_variants(all, what, axes, only_equal);
  };
  for (const size_t count : axes.counts)
    for (const comm::Element element : axes.elements)
      for (int op = 0; op < comm::kReduceOps; ++op)
        for (int kind = 0; kind < comm::kCollectives; ++kind)
          for (const comm::Algorithm* algorithm : comm::algorithms())
            add({.kind = static_cast<Collective>(kind),
                 .element = element,
                 .op = static_cast<comm::ReduceOp>(op),
                 .count = count},
                *algorithm);
  return all;
}

std::vector<MatrixCase> product_cases(const MatrixAxes& axes) {
  std::vector<MatrixCase> all;
  for (const Collected& what : product_of(axes))
    all.push_back({what.name(), [what, starts = axes.starts](comm::Communicator& c) {
                     return run_trial(c, what, starts);
                   }});
  return all;
}

}  // namespace tutti
