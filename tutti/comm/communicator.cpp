#include "tutti/comm/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <new>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/check/checked_channel.h"

namespace tutti::comm {
namespace {

class Fingerprint {
 public:
  void mix(uint64_t value) {
    for (int byte = 0; byte < 8; ++byte)
      hash_ = (hash_ ^ (value >> (8 * byte) & 0xFF)) * 1099511628211u;
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
  for (const uint64_t value :
       {static_cast<uint64_t>(spec.kind), static_cast<uint64_t>(spec.element),
        static_cast<uint64_t>(spec.op), static_cast<uint64_t>(spec.count),
        static_cast<uint64_t>(spec.root), static_cast<uint64_t>(spec.chunk),
        static_cast<uint64_t>(spec.priority)})
    print.mix(value);
  for (const Slice& part : task.parts) print.mix(part.count);
  print.mix(static_cast<uint64_t>(spec.leaves.replicas));
  for (const int first : spec.leaves.first) print.mix(static_cast<uint64_t>(first));
  print.mix(static_cast<uint64_t>(spec.shared_output));
  print.mix(algorithm);
  return print.value();
}

// What a rank plans, for a message that compares ranks.
std::string describe(const CollectiveSpec& spec, const Task& task, const std::string& algorithm) {
  std::string text = fmt::format("{} of {} {} by {}", comm::name_of(spec.kind), spec.count,
                                 comm::name_of(spec.element), algorithm);
  if (reduces(spec.kind)) text += fmt::format(", {}", comm::name_of(spec.op));
  if (!spec.name.empty()) text += fmt::format(", called {}", spec.name);
  text += fmt::format(", root {}, chunk {}, priority {}, my part {}", spec.root, spec.chunk,
                      spec.priority, task.parts.empty() ? 0 : task.part().count);
  return text;
}

bool overlap(const void* a, size_t a_count, const void* b, size_t b_count, size_t element_bytes) {
  const auto* const x = static_cast<const std::byte*>(a);
  const auto* const y = static_cast<const std::byte*>(b);
  return a_count > 0 && b_count > 0 && x < y + b_count * element_bytes &&
         y < x + a_count * element_bytes;
}

std::vector<Slice> equal_parts(size_t count, int parts, Collective kind) {
  const auto n = static_cast<size_t>(parts);
  if (count % n != 0)
    throw CommError(
        fmt::format("{}: {} elements cannot be dealt out equally to {} ranks: give the parts",
                    name_of(kind), count, parts));
  std::vector<Slice> all;
  for (size_t p = 0; p < n; ++p) all.push_back({p * (count / n), count / n});
  return all;
}

// In place of a fingerprint: this rank throws.
constexpr uint64_t kRefused = 0;

}  // namespace

Communicator::Communicator(int rank, int size, Group group)
    : rank_(rank), size_(size), name_(std::move(group.name)),
      job_ranks_(std::move(group.job_ranks)), job_size_(group.job_size),
      places_(static_cast<size_t>(size)) {
  if (!job_ranks_.empty()) return;
  job_size_ = size;
  job_ranks_.resize(static_cast<size_t>(size));
  std::iota(job_ranks_.begin(), job_ranks_.end(), 0);
}

Communicator::~Communicator() = default;

std::unique_ptr<Communicator> Communicator::split(int color, int key, std::string name) {
  const auto all = allgather_value(std::array<int, 2>{color, key});
  std::vector<int> members;
  for (int p = 0; p < size_; ++p)
    if (all[static_cast<size_t>(p)][0] == color) members.push_back(p);
  std::ranges::stable_sort(members, {}, [&](int p) { return all[static_cast<size_t>(p)][1]; });
  Group group{.name = name.empty() ? fmt::format("{}/{}", name_, color) : std::move(name),
              .job_ranks = {},
              .job_size = job_size_};
  for (const int p : members) group.job_ranks.push_back(job_rank(p));
  auto part = do_split(members, std::move(group));
  part->timeout_ = timeout_;
  part->on_timeout_ = on_timeout_;
  part->selection_ = selection_;
  part->decorators_ = decorators_;
  part->shaped_ = shaped_;
  part->checked_ = checked_;
  part->progress_ = progress_;
  return part;
}

void Communicator::set_places(std::vector<Place> places) {
  CHECK(places.size() == static_cast<size_t>(size_));
  places_ = std::move(places);
  local_rank_ = local_size_ = 0;
  std::vector<int> neighbours, memories;
  sharing_ = static_cast<int>(std::ranges::count(places_, place(rank_).kernel, &Place::kernel));
  for (int p = 0; p < size_; ++p) {
    if (place(p).memory == place(rank_).memory) neighbours.push_back(p);
    if (place(p).node != place(rank_).node) continue;
    if (p < rank_) ++local_rank_;
    ++local_size_;
  }
  neighbours_ = std::make_shared<const Neighbours>(std::move(neighbours));
  for (const Place& place : places_) memories.push_back(place.memory);
  std::ranges::sort(memories);
  shares_memory_ = std::ranges::adjacent_find(memories) != memories.end();
}

std::vector<int> Communicator::numbered(int Place::*what) const {
  std::vector<int> table;
  std::unordered_map<int, int> numbers;  // by what places call them
  for (const Place& place : places_)
    table.push_back(
        numbers.try_emplace(place.*what, static_cast<int>(numbers.size())).first->second);
  if (numbers.size() == 1) table.clear();
  return table;
}

std::vector<int> Communicator::node_of() const { return numbered(&Place::node); }

int Communicator::nodes() const { return count_nodes(node_of()); }

std::string Communicator::signed_message(const std::string& message) const {
  return message.starts_with(who()) ? message : who() + ": " + message;
}

void Communicator::barrier() { do_allgather(Control::barrier, {}, {}); }

void Communicator::broadcast(std::span<std::byte> data, int root) {
  CHECK(0 <= root && root < size_, "root {} of {}", root, size_);
  if (size_ > 1) do_broadcast(data, root);
}

void Communicator::allgather(std::span<const std::byte> mine, std::span<std::byte> all) {
  CHECK(all.size() == mine.size() * static_cast<size_t>(size_), "{} bytes of room for {} x {}",
        all.size(), size_, mine.size());
  do_allgather(Control::allgather, mine, all);
}

void Communicator::sum(std::span<double> values) {
  constexpr size_t kPiece = kMostCombined / sizeof(double);
  for (size_t begin = 0; begin < values.size(); begin += kPiece) {
    const auto piece = values.subspan(begin, std::min(kPiece, values.size() - begin));
    combine(std::as_writable_bytes(piece), [&piece](std::byte* mine, const std::byte* theirs) {
      std::array<double, kPiece> a, b;  // because bytes of messages are not aligned
      std::memcpy(a.data(), mine, piece.size_bytes());
      std::memcpy(b.data(), theirs, piece.size_bytes());
      for (size_t i = 0; i < piece.size(); ++i) a[i] += b[i];
      std::memcpy(mine, a.data(), piece.size_bytes());
    });
  }
}

void Communicator::combine(std::span<std::byte> value, const Fold& fold) {
  CHECK(value.size() <= kMostCombined, "{} bytes are too many to combine", value.size());
  if (size_ > 1) do_combine(value, fold);
}

Communicator::Agreement Communicator::agree_on(uint64_t fingerprint) {
  struct Bounds {
    uint64_t least, most, lacking;
  };
  const Bounds bounds = combine_value(
      Bounds{fingerprint, fingerprint, lacking()}, [](Bounds& mine, const Bounds& theirs) {
        mine = {std::min(mine.least, theirs.least), std::max(mine.most, theirs.most),
                std::max(mine.lacking, theirs.lacking)};
      });
  return {.same = bounds.least == bounds.most, .lacking = bounds.lacking > 0};
}

// Every rank gets the same answer.
std::string Communicator::disagreement(uint64_t fingerprint, const std::string& what,
                                       const std::string& plan) {
  const std::vector<uint64_t> prints = allgather_value(fingerprint);
  if (const auto refused = std::ranges::find(prints, kRefused); refused != prints.end())
    return fmt::format("{}: {}: {} cannot do what it was asked for; its own error says why",
                       describe_group(), what,
                       rank_name(static_cast<int>(refused - prints.begin())));
  const auto other =
      std::ranges::find_if(prints, [&](uint64_t print) { return print != prints[0]; });
  std::array<char, 160> text{};
  plan.copy(text.data(), text.size() - 1);
  const auto plans = allgather_value(text);
  const auto p = other - prints.begin();
  return fmt::format(
      "{}: {}: {} plans '{}', {} plans '{}'; all ranks need the same configuration and the same "
      "program",
      describe_group(), what, rank_name(static_cast<int>(p)), plans[static_cast<size_t>(p)].data(),
      rank_name(0), plans[0].data());
}

// One number of all blocks that are sent and one of all that are received, each a sum over ranks,
// are equal where the blocks are, and else but once in 2^64 times. So P counts a rank travel only
// where there is something to report.
std::string Communicator::unequal_blocks(const Task& task, const std::string& what) {
  const auto mark = [](int from, int to, size_t count) {
    Fingerprint print;
    for (const auto value : {static_cast<uint64_t>(from), static_cast<uint64_t>(to), count})
      print.mix(value);
    return print.value();
  };
  struct Marks {
    uint64_t sent = 0, received = 0;
  } mine;
  for (int p = 0; p < size_; ++p) {
    mine.sent += mark(rank_, p, task.sends[static_cast<size_t>(p)].count);
    mine.received += mark(p, rank_, task.receives[static_cast<size_t>(p)].count);
  }
  const Marks sum = combine_value(mine, [](Marks& all, const Marks& theirs) {
    all.sent += theirs.sent;
    all.received += theirs.received;
  });
  if (sum.sent == sum.received) return {};
  const auto ranks = static_cast<size_t>(size_);
  std::vector<uint64_t> counts, all(2 * ranks * ranks);
  for (const auto* blocks : {&task.sends, &task.receives})
    for (const Slice& block : *blocks) counts.push_back(block.count);
  allgather(std::as_bytes(std::span(counts)), std::as_writable_bytes(std::span(all)));
  for (size_t from = 0; from < ranks; ++from)
    for (size_t to = 0; to < ranks; ++to) {
      const uint64_t sent = all[from * 2 * ranks + to], received = all[(2 * to + 1) * ranks + from];
      if (sent != received)
        return fmt::format("{}: {}: {} sends {} elements to {}, which receives {}",
                           describe_group(), what, rank_name(static_cast<int>(from)), sent,
                           rank_name(static_cast<int>(to)), received);
    }
  throw InternalError("blocks that differ by their marks are all equal");
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
    const bool dealt = spec.kind == Collective::reduce_scatter ||
                       spec.kind == Collective::allgather || spec.kind == Collective::gather ||
                       spec.kind == Collective::scatter;
    task.parts =
        dealt ? equal_parts(spec.count, size_, spec.kind) : balanced_parts(spec.count, size_);
  }
  task.equal_blocks =
      spec.kind == Collective::all_to_all && spec.sends.empty() && spec.receives.empty();
  if (task.equal_blocks) task.sends = task.receives = equal_parts(spec.count, size_, spec.kind);
  task.ordered = spec.reproducible;
  task.node_of = numbered(shares_memory() || spec.shared_output ? &Place::memory : &Place::node);
  return task;
}

std::string Communicator::algorithm_for(const CollectiveSpec& spec, const Task& task,
                                        const std::string& what) const {
  check_task(task);
  if (reduces(spec.kind) && !has_arithmetic(spec.element))
    throw CommError(fmt::format("{}: bytes can be moved, but not reduced", what));
  if (!spec.rebindable) check_buffers(what, task, spec.input, spec.output);
  const Extent extent = extent_of(task);
  if (!spec.rebindable && spec.kind == Collective::all_to_all &&
      overlap(spec.input, extent.input, spec.output, extent.output, size_of(spec.element)))
    throw CommError(
        fmt::format("{}: input and output overlap on rank {}: a block would arrive where another "
                    "one has yet to leave",
                    what, rank_));
  const std::string name =
      spec.algorithm.empty() ? selection_.choose(task, size_of(spec.element)) : spec.algorithm;
  const Algorithm& algorithm = algorithm_named(name);
  if (const std::string why = refusal_of(algorithm, task); !why.empty()) throw CommError(why);
  if (spec.reproducible && !algorithm.reproducible(task))
    throw CommError(fmt::format("{}: {} does not add in the order of the tree among {} ranks", what,
                                name, size_));
  return name;
}

void Communicator::tell_choice(const Task& task, size_t element_bytes,
                               const std::string& algorithm) {
  if (!told_.emplace(task.kind, algorithm).second) return;
  const std::string text = explain_choice(task, element_bytes, algorithm);
  if (!text.empty()) log::info("{}: {}", describe_group(), text);
}

std::unique_ptr<CollectiveOperation> Communicator::plan(const CollectiveSpec& spec) {
  take_numbers_back();
  const ChannelNumbers before = numbers_;
  const std::string what = spec.name.empty()
                               ? std::string(comm::name_of(spec.kind))
                               : fmt::format("{} '{}'", comm::name_of(spec.kind), spec.name);
  Task task;
  std::string algorithm;
  std::unique_ptr<CollectiveOperation> operation;
  std::exception_ptr refusal;  // thrown only after the others have been told: they would wait for
                               // this rank until their time-out
  try {
    task = task_of(spec);
    algorithm = algorithm_for(spec, task, what);
    if (spec.algorithm.empty()) tell_choice(task, size_of(spec.element), algorithm);
    operation = std::make_unique<CollectiveOperation>(*this, spec, task, algorithm);
  } catch (const CommError& error) {
    refusal = std::make_exception_ptr(PlanError(error.what()));
  } catch (const std::bad_alloc&) {
    refusal = std::make_exception_ptr(PlanError(fmt::format("{}: no memory to plan it", what)));
  } catch (...) {
    refusal = std::current_exception();
  }
  // Nobody has used the channels: what the ranks refuse has taken no numbers.
  const auto undo = [&] {
    operation.reset();
    numbers_ = before;
  };
  const uint64_t print = refusal ? kRefused : fingerprint(spec, task, algorithm);
  const Agreement agreement = agree_on(print);
  if (!agreement.same || refusal) {
    undo();
    // All ranks refuse where all fingerprints are kRefused: each has its own reason.
    const std::string why =
        agreement.same ? std::string()
                       : disagreement(print, what, refusal ? "" : describe(spec, task, algorithm));
    if (refusal) std::rethrow_exception(refusal);
    throw PlanError(why);
  }
  if (spec.kind == Collective::all_to_all)
    if (const std::string unequal = unequal_blocks(task, what); !unequal.empty()) {
      undo();
      throw PlanError(unequal);
    }
  provide(numbers_.count(), agreement.lacking);
  return operation;
}

std::unique_ptr<Channel> Communicator::open_channel(std::vector<RoundOfMessages> rounds) {
  OpenChannel open = [this](std::vector<RoundOfMessages> plain) {
    return make_channel(std::move(plain), numbers_);
  };
  for (const ChannelDecorator& decorator : decorators_)
    open = [this, &decorator, inner = std::move(open)](std::vector<RoundOfMessages> wanted) {
      return decorator(*this, std::move(wanted), inner);
    };
  return open(std::move(rounds));
}

void Communicator::connect() { provide(numbers_.count(), most(lacking()) > 0); }

void Communicator::take_numbers_back() {
  if (!numbers_.due()) return;
  std::vector<uint8_t> marks = numbers_.marks();
  for (size_t begin = 0; begin < marks.size(); begin += kMostCombined) {
    const auto piece =
        std::span(marks).subspan(begin, std::min(kMostCombined, marks.size() - begin));
    combine(std::as_writable_bytes(piece), [&](std::byte* mine, const std::byte* theirs) {
      for (size_t i = 0; i < piece.size(); ++i)
        mine[i] = std::byte{ChannelNumbers::fold(std::to_integer<uint8_t>(mine[i]),
                                                 std::to_integer<uint8_t>(theirs[i]))};
    });
  }
  numbers_.settle(marks);
}

void Communicator::set_shape(const LinkShape& shape) {
  if (sharing_ != size_) throw CommError("a shaped link needs all ranks on one machine");
  shaped_ = true;
  decorate_channels(
      [link = std::make_shared<ShapedLink>(shape)](
          Communicator&, std::vector<RoundOfMessages> rounds, const OpenChannel& inner) {
        return std::make_unique<ShapedChannel>(std::move(rounds), inner, *link);
      });
}

void Communicator::set_check() {
  if (std::exchange(checked_, true)) return;
  decorate_channels([](Communicator& communicator, std::vector<RoundOfMessages> rounds,
                       const OpenChannel& inner) {
    return std::make_unique<CheckedChannel>(communicator, std::move(rounds), inner);
  });
}

void Communicator::set_progress(std::shared_ptr<Progress> progress) {
  CHECK(progress_->empty(), "operations are in flight");
  if (const std::string refusal = progress_refusal(); progress->threads() > 0 && !refusal.empty())
    throw CommError("no progress threads: " + refusal);
  progress_ = std::move(progress);
}

}  // namespace tutti::comm
