#include "tutti/comm/run/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <new>
#include <span>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/base/numeric/hash.h"
#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/communicator.h"

namespace tutti::comm {
namespace {

uint64_t fingerprint(const CollectiveSpec& spec, const Task& task, const std::string& algorithm) {
  Fnv1a print;
  print.add(spec.name);
  print.add(spec.name.size());
  for (const uint64_t value :
       {static_cast<uint64_t>(spec.kind), static_cast<uint64_t>(spec.element),
        static_cast<uint64_t>(spec.op), static_cast<uint64_t>(spec.count),
        static_cast<uint64_t>(spec.root), static_cast<uint64_t>(spec.chunk),
        static_cast<uint64_t>(spec.priority)})
    print.add(value);
  for (const Slice& part : task.parts) print.add(part.count);
  print.add(static_cast<uint64_t>(spec.leaves.replicas));
  for (const int first : spec.leaves.first) print.add(static_cast<uint64_t>(first));
  print.add(static_cast<uint64_t>(spec.shared_output));
  print.add(static_cast<uint64_t>(spec.reproducible));
  print.add(algorithm);
  print.add(algorithm.size());
  return print.value();
}

// Describes a rank's plan, for a message that compares ranks.
std::string describe(const CollectiveSpec& spec, const std::string& algorithm) {
  std::string text = fmt::format("{} of {} {} by {}", comm::name_of(spec.kind), spec.count,
                                 comm::name_of(spec.element), algorithm);
  if (reduces(spec.kind)) text += fmt::format(", {}", comm::name_of(spec.op));
  if (spec.reproducible) text += ", reproducible";
  if (!spec.name.empty()) text += fmt::format(", called {}", spec.name);
  text += fmt::format(", root {}, chunk {}, priority {}", spec.root, spec.chunk, spec.priority);
  return text;
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

// Replaces the fingerprint of a rank that throws.
constexpr uint64_t kRefused = 0;

}  // namespace

Planner::Agreement Planner::agree_on(uint64_t fingerprint) {
  struct Bounds {
    uint64_t least, most, lacking;
  };
  const Bounds bounds = communicator_.combine_value(
      Bounds{fingerprint, fingerprint, communicator_.channels().lacking()},
      [](Bounds& mine, const Bounds& theirs) {
        mine = {std::min(mine.least, theirs.least), std::max(mine.most, theirs.most),
                std::max(mine.lacking, theirs.lacking)};
      });
  return {.same = bounds.least == bounds.most, .lacking = bounds.lacking > 0};
}

// Every rank gets the same answer.
std::string Planner::disagreement(uint64_t fingerprint, const std::string& what, const Task& task,
                                  const std::string& plan) {
  const std::vector<uint64_t> prints = communicator_.allgather_value(fingerprint);
  if (const auto refused = std::ranges::find(prints, kRefused); refused != prints.end())
    return fmt::format("{}: {}: {} cannot do what it was asked for; its own error says why",
                       communicator_.describe_group(), what,
                       communicator_.rank_name(static_cast<int>(refused - prints.begin())));
  const auto other =
      std::ranges::find_if(prints, [&](uint64_t print) { return print != prints[0]; });
  std::array<char, 160> text{};
  plan.copy(text.data(), text.size() - 1);
  const auto plans = communicator_.allgather_value(text);
  const auto p = other - prints.begin();
  if (plans[static_cast<size_t>(p)] == plans[0])
    if (const std::string parts = unequal_parts(task, what, static_cast<int>(p)); !parts.empty())
      return parts;
  return fmt::format(
      "{}: {}: {} plans '{}', {} plans '{}'; all ranks need the same configuration and the same "
      "program",
      communicator_.describe_group(), what, communicator_.rank_name(static_cast<int>(p)),
      plans[static_cast<size_t>(p)].data(), communicator_.rank_name(0), plans[0].data());
}

// Empty where ranks 0 and p have the same parts of the long vector.
std::string Planner::unequal_parts(const Task& task, const std::string& what, int p) {
  std::vector<uint64_t> mine;
  for (const Slice& part : task.parts) mine.push_back(part.count);
  mine.resize(static_cast<size_t>(communicator_.size()));
  std::vector<uint64_t> first = mine, theirs = mine;
  communicator_.broadcast(std::as_writable_bytes(std::span(first)), 0);
  communicator_.broadcast(std::as_writable_bytes(std::span(theirs)), p);
  for (size_t q = 0; q < mine.size(); ++q)
    if (first[q] != theirs[q])
      return fmt::format(
          "{}: {}: {} gives rank {} of it {} elements (counts[{}]), {} gives it {}; all ranks need "
          "the same configuration and the same program",
          communicator_.describe_group(), what, communicator_.rank_name(p), q, theirs[q], q,
          communicator_.rank_name(0), first[q]);
  return {};
}

// All blocks that are sent give one number and all that are received another, each a sum over
// ranks. The two are equal where the blocks are equal, and otherwise once in 2^64 cases. So P
// counts a rank travel only where there is something to report.
std::string Planner::unequal_blocks(const Task& task, const std::string& what) {
  const auto mark = [](int from, int to, size_t count) {
    Fnv1a print;
    for (const auto value : {static_cast<uint64_t>(from), static_cast<uint64_t>(to), count})
      print.add(value);
    return print.value();
  };
  struct Marks {
    uint64_t sent = 0, received = 0;
  } mine;
  for (int p = 0; p < communicator_.size(); ++p) {
    mine.sent += mark(communicator_.rank(), p, task.sent_to(p).count);
    mine.received += mark(p, communicator_.rank(), task.received_from(p).count);
  }
  const Marks sum = communicator_.combine_value(mine, [](Marks& all, const Marks& theirs) {
    all.sent += theirs.sent;
    all.received += theirs.received;
  });
  if (sum.sent == sum.received) return {};
  const auto ranks = static_cast<size_t>(communicator_.size());
  std::vector<uint64_t> counts, all(2 * ranks * ranks);
  for (const auto* blocks : {&task.sends, &task.receives})
    for (const Slice& block : *blocks) counts.push_back(block.count);
  communicator_.allgather(std::as_bytes(std::span(counts)), std::as_writable_bytes(std::span(all)));
  for (size_t from = 0; from < ranks; ++from)
    for (size_t to = 0; to < ranks; ++to) {
      const uint64_t sent = all[from * 2 * ranks + to], received = all[(2 * to + 1) * ranks + from];
      if (sent != received)
        return fmt::format("{}: {}: {} sends {} elements to {}, which receives {}",
                           communicator_.describe_group(), what,
                           communicator_.rank_name(static_cast<int>(from)), sent,
                           communicator_.rank_name(static_cast<int>(to)), received);
    }
  throw InternalError("blocks that differ by their marks are all equal");
}

Task Planner::task_of(const CollectiveSpec& spec) const {
  Task task{.kind = spec.kind,
            .rank = communicator_.rank(),
            .ranks = communicator_.size(),
            .root = spec.root,
            .count = spec.count,
            .parts = spec.parts,
            .sends = spec.sends,
            .receives = spec.receives,
            .wide = accumulator_of(spec.element, spec.op) != spec.element,
            .mean = spec.op == ReduceOp::mean};
  if (!spec.leaves.one_a_rank()) task.leaves = spec.leaves;
  task.shared_output = spec.shared_output;
  if (task.parts.empty())
    task.parts = has_parts(spec.kind) ? equal_parts(spec.count, communicator_.size(), spec.kind)
                                      : balanced_parts(spec.count, communicator_.size());
  task.equal_blocks =
      spec.kind == Collective::all_to_all && spec.sends.empty() && spec.receives.empty();
  if (task.equal_blocks)
    task.sends = task.receives = equal_parts(spec.count, communicator_.size(), spec.kind);
  task.ordered = spec.reproducible;
  task.node_of = communicator_.places().numbered(
      communicator_.shares_memory() || spec.shared_output ? &Place::memory : &Place::node);
  return task;
}

std::string Planner::algorithm_for(const CollectiveSpec& spec, const Draft& draft) const {
  const Task& task = draft.task;
  const std::string& what = draft.what;
  check_task(task);
  if (reduces(spec.kind) && !has_arithmetic(spec.element))
    throw CommError(fmt::format("{}: bytes can be moved, but not reduced", what));
  if (!spec.rebindable) check_buffers(what, task, size_of(spec.element), spec.input, spec.output);
  const Extent extent = extent_of(task);
  const auto bytes = [&](const void* at, size_t count) {
    return std::span(static_cast<const std::byte*>(at), count * size_of(spec.element));
  };
  if (!spec.rebindable && spec.kind == Collective::all_to_all &&
      overlap(bytes(spec.input, extent.input), bytes(spec.output, extent.output)))
    throw CommError(
        fmt::format("{}: input and output overlap on rank {}: a block would arrive where another "
                    "one has yet to leave",
                    what, communicator_.rank()));
  const std::string name =
      spec.algorithm.empty() ? selection_.choose(task, size_of(spec.element)) : spec.algorithm;
  const Algorithm& algorithm = algorithm_named(name);
  if (const std::string why = refusal_of(algorithm, task); !why.empty()) throw CommError(why);
  if (spec.reproducible && !algorithm.reproducible(task))
    throw CommError(fmt::format("{}: {} does not add in the order of the tree among {} ranks", what,
                                name, communicator_.size()));
  return name;
}

void Planner::tell_choice(const Task& task, size_t element_bytes, const std::string& algorithm) {
  if (!logged_.emplace(task.kind, algorithm).second) return;
  const std::string text = explain_choice(task, element_bytes, algorithm);
  if (!text.empty()) log::info("{}: {}", communicator_.describe_group(), text);
}

void Planner::make(const CollectiveSpec& spec, Draft& draft) {
  draft.task = task_of(spec);
  draft.algorithm = algorithm_for(spec, draft);
  if (spec.algorithm.empty()) tell_choice(draft.task, size_of(spec.element), draft.algorithm);
  draft.operation =
      std::make_unique<CollectiveOperation>(communicator_, spec, draft.task, draft.algorithm);
}

std::unique_ptr<CollectiveOperation> Planner::plan(const CollectiveSpec& spec) {
  Channels& channels = communicator_.channels();
  channels.take_back();
  const ChannelNumbers before = channels.mark();
  Draft draft{.what = spec.name.empty()
                          ? std::string(comm::name_of(spec.kind))
                          : fmt::format("{} '{}'", comm::name_of(spec.kind), spec.name)};
  std::exception_ptr refusal;  // thrown only after the agreement: the others wait for this rank
  try {
    make(spec, draft);
  } catch (const CommError& error) {
    refusal = std::make_exception_ptr(PlanError(error.what()));
  } catch (const std::bad_alloc&) {
    refusal =
        std::make_exception_ptr(PlanError(fmt::format("{}: no memory to plan it", draft.what)));
  } catch (...) {
    refusal = std::current_exception();
  }
  // No rank has used the channels: a refused plan has taken no numbers.
  const auto undo = [&] {
    draft.operation.reset();
    channels.undo_to(before);
  };
  const uint64_t print = refusal ? kRefused : fingerprint(spec, draft.task, draft.algorithm);
  const Agreement agreement = agree_on(print);
  if (!agreement.same || refusal) {
    undo();
    // All ranks refuse where all fingerprints are kRefused: each has its own reason.
    const std::string why = agreement.same
                                ? std::string()
                                : disagreement(print, draft.what, draft.task,
                                               refusal ? "" : describe(spec, draft.algorithm));
    if (refusal) std::rethrow_exception(refusal);
    throw PlanError(why);
  }
  if (spec.kind == Collective::all_to_all)
    if (const std::string unequal = unequal_blocks(draft.task, draft.what); !unequal.empty()) {
      undo();
      throw PlanError(unequal);
    }
  channels.provide(agreement.lacking);
  return std::move(draft.operation);
}

}  // namespace tutti::comm
