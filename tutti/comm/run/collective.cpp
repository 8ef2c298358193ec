#include "tutti/comm/run/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>

#include "tutti/base/error.h"
#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/check/result_check.h"
#include "tutti/comm/communicator.h"

namespace tutti::comm {
namespace {

size_t end_of(const std::vector<Slice>& slices) {
  size_t end = 0;
  for (const Slice& slice : slices) end = std::max(end, slice.end());
  return end;
}

bool can_be_cut(Collective kind) {
  return kind == Collective::broadcast || kind == Collective::reduce ||
         kind == Collective::allreduce;
}

// Whether the collective can run as pieces of every rank's part. Inside a node each piece takes a
// message of its own, because pieces of neighbouring parts have gaps: so only among few ranks.
bool can_be_cut_in_parts(const Task& task, const Algorithm& algorithm) {
  constexpr int kFew = 32;
  return task.ranks <= kFew &&
         (task.kind == Collective::reduce_scatter || task.kind == Collective::allgather) &&
         algorithm.serves_gaps;
}

// Elements of a piece. Long collectives between nodes are cut where the caller gives no size: sums
// and copies inside the nodes for one piece then overlap with the messages of another
// (docs/results.md, 16 MiB at 1 Gb/s). There are a few dozen at most, because each has a channel,
// and each keeps enough bytes for every rank.
size_t chunk_of(const CollectiveSpec& spec, const Task& task) {
  constexpr size_t kBytes = size_t{1} << 20, kLong = 4 * kBytes, kMostPieces = 32;
  const size_t whole = std::max<size_t>(task.count, 1);
  if (spec.chunk > 0) return spec.chunk;
  const size_t size = size_of(spec.element);
  const bool hides = task.kind == Collective::allreduce ||
                     task.kind == Collective::reduce_scatter ||
                     (task.kind == Collective::allgather && !task.shared_output);
  if (!hides || task.node_of.empty() || task.count < kLong / size) return whole;
  const size_t least =
      std::max(kBytes, static_cast<size_t>(task.ranks) * kLeastBytesOfARank) / size;
  return std::max(least, (task.count + kMostPieces - 1) / kMostPieces);
}

// One schedule's task, and where its buffers begin in the caller's, in elements.
struct Piece {
  Task task;
  size_t input = 0, output = 0;
};

std::vector<Piece> cut_vector(const Task& task, size_t chunk) {
  std::vector<Piece> pieces;
  size_t begin = 0;
  do {
    Piece& piece = pieces.emplace_back(Piece{.task = task, .input = begin, .output = begin});
    piece.task.count = std::min(chunk, task.count - begin);
    piece.task.parts = balanced_parts(piece.task.count, task.ranks);
    begin += chunk;
  } while (begin < task.count);
  return pieces;
}

// Each piece has a piece of every part, in its place in the long buffer.
std::vector<Piece> cut_parts(const Task& task, size_t number) {
  std::vector<Piece> pieces(number, Piece{.task = task});
  const auto rank = static_cast<size_t>(task.rank);
  for (size_t p = 0; p < task.parts.size(); ++p) {
    const Slice part = task.parts[p];
    const std::vector<Slice> cut = balanced_parts(part.count, static_cast<int>(number));
    for (size_t k = 0; k < number; ++k) {
      pieces[k].task.parts[p] = {part.begin + cut[k].begin, cut[k].count};
      if (p == rank)
        (task.kind == Collective::allgather ? pieces[k].input : pieces[k].output) = cut[k].begin;
    }
  }
  for (Piece& piece : pieces) piece.task.gaps = true;
  return pieces;
}

std::vector<Piece> pieces_of(const CollectiveSpec& spec, const Task& task,
                             const Algorithm& algorithm, bool checked) {
  const size_t chunk = chunk_of(spec, task);
  if (can_be_cut(task.kind)) return cut_vector(task, chunk);
  // The check of results needs parts without gaps between them.
  if (task.count <= chunk || checked || !can_be_cut_in_parts(task, algorithm))
    return {Piece{.task = task}};
  return cut_parts(task, (task.count + chunk - 1) / chunk);
}

}  // namespace

Extent extent_of(const Task& task) {
  const bool root = task.rank == task.root;
  const size_t part = task.parts.empty() ? 0 : task.part().count;
  const size_t addend = task.count + (task.leaves.parts_of(task.rank) - 1) * task.leaves.stride;
  switch (task.kind) {
    case Collective::barrier: return {0, 0};
    case Collective::broadcast: return {root ? task.count : 0, task.count};
    case Collective::reduce: return {task.count, root ? task.count : 0};
    case Collective::allreduce: return {addend, task.count};
    case Collective::reduce_scatter: return {addend, part};
    case Collective::allgather: return {part, task.count};
    case Collective::gather: return {part, root ? task.count : 0};
    case Collective::scatter: return {root ? task.count : 0, part};
    case Collective::all_to_all: return {end_of(task.sends), end_of(task.receives)};
  }
  return {};
}

namespace {

// How many bytes after the input the output begins, where the two overlap.
std::optional<ptrdiff_t> offset_in_place(const Task& task, size_t element_bytes, const void* input,
                                         const void* output) {
  const Extent extent = extent_of(task);
  const auto in = reinterpret_cast<uintptr_t>(input), out = reinterpret_cast<uintptr_t>(output);
  if (in == 0 || out == 0 || extent.input == 0 || extent.output == 0) return std::nullopt;
  if (out >= in + extent.input * element_bytes || in >= out + extent.output * element_bytes)
    return std::nullopt;
  return static_cast<ptrdiff_t>(out - in);
}

bool may_lie_at(const Task& task, size_t element_bytes, ptrdiff_t offset) {
  const auto own = static_cast<ptrdiff_t>(
      task.parts.empty() ? 0 : task.part().begin * element_bytes);  // the part in the long buffer
  switch (task.kind) {
    case Collective::all_to_all: return false;
    case Collective::reduce_scatter: return offset == 0 || offset == own;
    case Collective::scatter: return offset == own;
    case Collective::gather:
    case Collective::allgather: return offset == -own;
    default: return offset == 0;
  }
}

std::string_view in_place_rule(Collective kind) {
  switch (kind) {
    case Collective::all_to_all: return "they lie apart";
    case Collective::reduce_scatter:
      return "the output is the beginning of the input, or this rank's part of it";
    case Collective::scatter:
    case Collective::gather:
    case Collective::allgather: return "the short one is this rank's part of the long one";
    default: return "they begin together";
  }
}

}  // namespace

void check_buffers(const std::string& what, const Task& task, size_t element_bytes,
                   const void* input, const void* output) {
  const Extent extent = extent_of(task);
  if (extent.output > 0 && output == nullptr)
    throw PlanError(fmt::format("{}: no output on rank {}, which receives {} elements", what,
                                task.rank, extent.output));
  const auto offset = offset_in_place(task, element_bytes, input, output);
  if (offset && !may_lie_at(task, element_bytes, *offset))
    throw PlanError(fmt::format("{}: on rank {} input and output overlap where they may not: {}",
                                what, task.rank, in_place_rule(task.kind)));
  if (extent.input > 0 && input == nullptr && (!can_be_cut(task.kind) || output == nullptr))
    throw PlanError(fmt::format("{}: no input on rank {}, which gives {} elements", what, task.rank,
                                extent.input));
}

CollectiveOperation::CollectiveOperation(Communicator& communicator, const CollectiveSpec& spec,
                                         const Task& task, const std::string& algorithm)
    : Operation(communicator, spec.name.empty()
                                  ? std::string(name_of(spec.kind))
                                  : fmt::format("{} '{}'", name_of(spec.kind), spec.name)),
      task_(task), rebindable_(spec.rebindable), bound_(!spec.rebindable),
      input_(spec.rebindable ? nullptr : spec.input),
      output_(spec.rebindable ? nullptr : spec.output), element_bytes_(size_of(spec.element)) {
  set_priority(spec.priority);
  const Algorithm& how = algorithm_named(algorithm);
  const std::vector<Piece> pieces = pieces_of(spec, task, how, communicator.checked());
  for (const Piece& piece : pieces)
    begins_.push_back({piece.input * element_bytes_, piece.output * element_bytes_});
  set_output_aside();
  for (const Piece& piece : pieces) {
    const Operands operands{.input = input_of(runs_.size()),
                            .output = output_of(runs_.size()),
                            .rebindable = rebindable_,
                            .element = spec.element,
                            .op = spec.op,
                            .divisor = static_cast<double>(task.ranks)};
    runs_.push_back(
        std::make_unique<ScheduleRun>(communicator, make_schedule(how, piece.task), operands));
    if (communicator.checked() && task.ranks > 1)
      checks_.push_back(std::make_unique<ResultCheck>(communicator, piece.task,
                                                      runs_.back()->schedule(), operands));
  }
}

size_t CollectiveOperation::bytes_received() const {
  size_t bytes = 0;
  for (const auto& run : runs_) bytes += run->bytes_received();
  return bytes;
}

CollectiveOperation::~CollectiveOperation() {
  withdraw();
  pacer().leave(flow_);
}

void CollectiveOperation::begin(size_t chunk) {
  if (!checks_.empty()) checks_[chunk]->begin();
  runs_[chunk]->begin();
}

bool CollectiveOperation::advance(size_t chunk) {
  return runs_[chunk]->advance() && (checks_.empty() || checks_[chunk]->advance());
}

std::byte* CollectiveOperation::output_of(size_t chunk) const {
  auto* const output = aside_ ? aside_.get() : static_cast<std::byte*>(output_);
  return output == nullptr ? nullptr : output + begins_[chunk].output;
}

// In place, the sums of one chunk of this rank's part may lie where other chunks have input that
// peers have yet to read; but not where the part lies in its own place of the long vector.
bool CollectiveOperation::sums_would_cover_input() const {
  if (task_.kind != Collective::reduce_scatter || begins_.size() == 1) return false;
  const auto offset = offset_in_place(task_, element_bytes_, input_, output_);
  return offset && *offset != static_cast<ptrdiff_t>(task_.part().begin * element_bytes_);
}

void CollectiveOperation::set_output_aside() {
  std::unique_ptr<std::byte[]> aside;  // first, because the runs still point to the old one
  if (sums_would_cover_input())
    aside = std::make_unique_for_overwrite<std::byte[]>(task_.part().count * element_bytes_);
  aside_ = std::move(aside);
}

std::byte* CollectiveOperation::input_of(size_t chunk) const {
  if (input_ == nullptr) return can_be_cut(task_.kind) ? output_of(chunk) : nullptr;
  return static_cast<std::byte*>(const_cast<void*>(input_)) + begins_[chunk].input;
}

void CollectiveOperation::rebind(const void* input, void* output) {
  CHECK(rebindable_ && !in_flight(),
        "{}: buffers given to an operation that is in flight, or has its own", name());
  if (bound_ && input == input_ && output == output_) return;
  check_buffers(name(), task_, element_bytes_, input, output);
  bound_ = false;  // until all chunks have the new buffers: memory may run out
  input_ = input;
  output_ = output;
  set_output_aside();
  for (size_t k = 0; k < runs_.size(); ++k) runs_[k]->rebind(input_of(k), output_of(k));
  for (size_t k = 0; k < checks_.size(); ++k) checks_[k]->rebind(input_of(k), output_of(k));
  bound_ = true;
}

void CollectiveOperation::begin() {
  CHECK(bound_, "{}: started without buffers", name());
  first_ = started_ = expected_ = 0;
  if (runs_.size() == 1) return begin(started_++);
  pacer().enter(flow_, priority());
  begin_chunks(0, 0);
}

bool CollectiveOperation::advance() {
  const bool in_chunks = runs_.size() > 1;
  size_t were_leaving = 0, leaving = 0;
  for (size_t i = first_; i < started_; ++i) {
    if (in_chunks) were_leaving += runs_[i]->leaving();
    if (advance(i) && i == first_) ++first_;
    if (in_chunks) leaving += runs_[i]->leaving();
  }
  if (in_chunks) begin_chunks(leaving, were_leaving);
  const bool complete = first_ == runs_.size();
  if (in_chunks && complete) pacer().leave(flow_);
  if (complete && aside_) std::memcpy(output_, aside_.get(), task_.part().count * element_bytes_);
  return complete;
}

void CollectiveOperation::begin_chunks(size_t leaving, size_t were_leaving) {
  expect_chunks();
  pacer().note(flow_, leaving, were_leaving, started_ < runs_.size());
  while (started_ < runs_.size() && pacer().may_begin(flow_)) {
    begin(started_);
    leaving += runs_[started_++]->leaving();
    expect_chunks();
    pacer().note(flow_, leaving, were_leaving, started_ < runs_.size());
  }
}

// Lets the chunks that another rank sends leave it, before this rank begins them.
void CollectiveOperation::expect_chunks() {
  constexpr size_t kAhead = 4;
  for (; expected_ < std::min(started_ + kAhead, runs_.size()); ++expected_)
    if (expected_ >= started_) runs_[expected_]->expect();
}

Pending CollectiveOperation::describe() const {
  Pending what{.operation = fmt::format("{} by {}", name(), algorithm()),
               .sequence = sequence(),
               .arrived = {},
               .missing = {}};
  if (runs_.size() > 1)
    what.operation +=
        fmt::format(" (chunk {} of {})", std::min(first_ + 1, runs_.size()), runs_.size());
  // Nothing is known of ranks that are not peers of this round.
  std::vector<int> sources{communicator().rank()};
  // Rounds of all chunks under way: others may arrive behind a slow one.
  constexpr size_t kRounds = size_t{1} << 20;  // more than a run has
  what.passed = first_ * kRounds;
  for (size_t i = first_; i < started_; ++i) what.passed += runs_[i]->round();
  if (first_ < runs_.size()) {
    what.missing = runs_[first_]->missing();
    if (what.missing.empty() && !checks_.empty()) what.missing = checks_[first_]->missing();
    std::ranges::copy(runs_[first_]->peers(), std::back_inserter(sources));
  }
  std::ranges::sort(sources);
  sources.erase(std::ranges::unique(sources).begin(), sources.end());
  std::ranges::set_difference(sources, what.missing, std::back_inserter(what.arrived));
  return what;
}

}  // namespace tutti::comm
