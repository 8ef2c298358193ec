#include "tutti/comm/run/schedule_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <tuple>

#include "tutti/base/error.h"
#include "tutti/comm/communicator.h"

namespace tutti::comm {
namespace {
constexpr size_t kChainBlock = 1024;  // elements at a time: a few such streams fit in a 32 KiB L1
// Elements of a piece of a chain: some tens of microseconds.
constexpr size_t kShared = size_t{32} << 10;
// Shortest chain that is cut, in elements: to deal out a shorter one costs 3 % without helpers.
constexpr size_t kWorthSharing = 8 * kShared;
}  // namespace

ScheduleRun::Memory ScheduleRun::allocate(size_t bytes) {
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(64, (bytes / 64 + 1) * 64));
  if (memory == nullptr)
    throw CommError(fmt::format("no memory for {} bytes of a collective", bytes));
  return {memory, [](std::byte* m) { std::free(m); }};
}

ScheduleRun::ScheduleRun(Communicator& communicator, Schedule schedule, const Operands& operands)
    : communicator_(communicator), schedule_(std::move(schedule)), operands_(operands),
      accumulator_type_(accumulator_of(operands.element, operands.op)),
      staging_(allocate(schedule_.staging * size_of(operands.element))),
      accumulator_(allocate(schedule_.accumulator * size_of(accumulator_type_))) {
  find_properties();
  channel_ = communicator.channels().open(messages());
}

void ScheduleRun::rebind(std::byte* input, std::byte* output) {
  operands_.input = input;
  operands_.output = output;
  find_properties();  // they depend on whether input and output are the same memory
  channel_->rebind(messages());
}

void ScheduleRun::find_properties() {
  std::vector<Touched> touched;
  for (const Round& round : schedule_.rounds) touched.push_back(touched_in(round));
  properties_.clear();
  for (size_t r = 0; r < schedule_.rounds.size(); ++r)
    properties_.push_back(properties_of(r, touched));
}

ScheduleRun::Touched ScheduleRun::touched_in(const Round& round) const {
  Touched touched;
  for (const Message& m : round.sends) touched.sent.add(extents_of(m.block));
  for (const Message& m : round.receives) touched.received.add(extents_of(m.block));
  for (const LocalStep& step : round.steps) {
    touched.written.add(extents_of(step.to));
    touched.read.add(extents_of(step.a));
    if (step.kind == LocalStep::Kind::reduce) touched.read.add(extents_of(step.b));
  }
  return touched;
}

Run ScheduleRun::run_of(const Block& block) const {
  const auto at = [&](std::byte* base, Element type) {
    return Run{base == nullptr ? nullptr : base + block.slice.begin * size_of(type), type};
  };
  switch (block.space) {
    case Space::input: return at(operands_.input, operands_.element);
    case Space::output: return at(operands_.output, operands_.element);
    case Space::staging: return at(staging_.get(), operands_.element);
    case Space::accumulator: return at(accumulator_.get(), accumulator_type_);
  }
  return {};
}

size_t ScheduleRun::bytes_of(const Block& block) const {
  return block.count() * size_of(run_of(block).type);
}

// Compares by address: input and output may be the same memory. Before rebind() there is none.
Extents ScheduleRun::extents_of(const Block& block) const {
  return {run_of(block).data, bytes_of(block)};
}

// Whether data that arrive in `block` in this round are read by its steps as this very block, and
// never again before other data arrive there.
bool ScheduleRun::only_read_in(size_t round, const Block& block,
                               const std::vector<Touched>& touched) const {
  if (block.space != Space::staging && block.space != Space::accumulator) return false;
  const Extents extents = extents_of(block);
  if (touched[round].written.touches(extents) || touched[round].read.touches_otherwise(extents))
    return false;
  for (size_t r = round + 1; r < touched.size(); ++r) {
    if (touched[r].sent.touches(extents)) return false;
    if (touched[r].received.touches(extents)) return true;
    if (touched[r].read.touches(extents)) return false;
  }
  return true;
}

ScheduleRun::Properties ScheduleRun::properties_of(size_t r,
                                                   const std::vector<Touched>& touched) const {
  const Round& round = schedule_.rounds[r];
  Properties properties{.free = true, .may_borrow = true, .chains = chains_of(round), .steps = {}};
  for (const LocalStep& step : round.steps)
    properties.free = properties.free && !touched[r].sent.touches(extents_of(step.to));
  properties.may_borrow =
      properties.free && std::ranges::all_of(round.receives, [&](const Message& m) {
        return only_read_in(r, m.block, touched);
      });
  properties.steps = resolve(round, properties.may_borrow);
  return properties;
}

// Resolved once for all runs: a step of a sum over n ranks would search n messages for every block.
std::vector<ScheduleRun::ResolvedStep> ScheduleRun::resolve(const Round& round,
                                                            bool may_borrow) const {
  std::map<std::tuple<Space, size_t, size_t>, int> messages;
  const auto key = [](const Block& b) { return std::tuple(b.space, b.slice.begin, b.slice.count); };
  for (size_t i = 0; may_borrow && i < round.receives.size(); ++i)
    messages[key(round.receives[i].block)] = static_cast<int>(i);
  const auto operand = [&](const Block& block) {
    const auto found = messages.find(key(block));
    return Operand{run_of(block), found == messages.end() ? -1 : found->second};
  };
  std::vector<ResolvedStep> steps;
  for (const LocalStep& step : round.steps)
    steps.push_back({operand(step.to), operand(step.a), operand(step.b)});
  return steps;
}

// A chain grows while counts are equal and blocks of different steps are either identical or apart;
// blocks that are only read may overlap.
std::vector<ScheduleRun::Chain> ScheduleRun::chains_of(const Round& round) const {
  std::vector<Chain> chains;
  Footprint written, read;  // by the last chain
  size_t count = 0;
  for (size_t i = 0; i < round.steps.size(); ++i) {
    const LocalStep& step = round.steps[i];
    const bool reduces = step.kind == LocalStep::Kind::reduce;
    const Extents to = extents_of(step.to), a = extents_of(step.a),
                  b = reduces ? extents_of(step.b) : Extents{};
    if (!chains.empty() && step.to.count() == count && !written.crosses(to) && !read.crosses(to) &&
        !written.crosses(a) && !written.crosses(b)) {
      ++chains.back().last;
    } else {
      chains.push_back({i, i + 1});
      written.clear();
      read.clear();
      count = step.to.count();
    }
    written.add(to);
    read.add(a);
    read.add(b);
  }
  return chains;
}

std::vector<RoundOfMessages> ScheduleRun::messages() const {
  const auto item = [&](const Message& m) {
    const bool of_caller = m.block.space == Space::input || m.block.space == Space::output;
    return RoundOfMessages::Item{m.peer, run_of(m.block).data, bytes_of(m.block),
                                 operands_.rebindable && of_caller};
  };
  std::vector<RoundOfMessages> all;
  for (size_t r = 0; r < schedule_.rounds.size(); ++r) {
    RoundOfMessages& round = all.emplace_back();
    for (const Message& m : schedule_.rounds[r].receives) round.receives.push_back(item(m));
    for (const Message& m : schedule_.rounds[r].sends) round.sends.push_back(item(m));
    round.may_borrow = properties_[r].may_borrow;
    // Otherwise a rank could begin any number of runs ahead of its receivers, which would have to
    // keep the messages.
    round.until_taken = !schedule_.needs_all;
  }
  return all;
}

size_t ScheduleRun::bytes_received() const {
  size_t bytes = 0;
  for (const Round& round : schedule_.rounds)
    for (const Message& m : round.receives) bytes += bytes_of(m.block);
  return bytes;
}

void ScheduleRun::expect() {
  begun_ = false;
  if (!schedule_.rounds.empty()) channel_->expect();
}

void ScheduleRun::begin() {
  begun_ = true;
  round_ = 0;
  stepped_ = false;
  if (!schedule_.rounds.empty()) channel_->post(0);
}

bool ScheduleRun::advance() {
  while (round_ < schedule_.rounds.size()) {
    const Properties& properties = properties_[round_];
    if (!stepped_) {
      if (!channel_->received() || (!properties.free && !channel_->sent())) return false;
      for (const Chain& chain : properties.chains) run_chain(chain);
      channel_->release();
      stepped_ = true;
    }
    if (!channel_->sent()) return false;
    stepped_ = false;
    if (++round_ < schedule_.rounds.size()) channel_->post(round_);
  }
  return true;
}

// A peer that has sent its own data but not yet taken ours is there: it counts as missing only when
// no other rank is.
std::vector<int> ScheduleRun::missing() const {
  if (round_ >= schedule_.rounds.size()) return {};
  const auto [not_arrived, not_taken] = channel_->missing();
  const std::vector<Message>& receives = schedule_.rounds[round_].receives;
  std::vector<int> missing = not_arrived;
  std::ranges::copy_if(not_taken, std::back_inserter(missing), [&](int peer) {
    return std::ranges::find(receives, peer, &Message::peer) == receives.end();
  });
  if (missing.empty()) missing = not_taken;
  std::ranges::sort(missing);
  missing.erase(std::ranges::unique(missing).begin(), missing.end());
  return missing;
}

std::vector<int> ScheduleRun::peers() const {
  std::vector<int> all;
  if (round_ >= schedule_.rounds.size()) return all;
  for (const Message& m : schedule_.rounds[round_].receives) all.push_back(m.peer);
  for (const Message& m : schedule_.rounds[round_].sends) all.push_back(m.peer);
  return all;
}

Run ScheduleRun::at(const Operand& operand, size_t offset) const {
  Run run = operand.run;
  if (operand.message >= 0)
    run.data = const_cast<std::byte*>(channel_->where(static_cast<size_t>(operand.message)));
  run.data += offset * size_of(run.type);
  return run;
}

// Cuts the chain into pieces for waiting threads. An element's value does not depend on its piece.
void ScheduleRun::run_chain(const Chain& chain) {
  const size_t count = schedule_.rounds[round_].steps[chain.first].to.count();
  if (count < kWorthSharing) return run_piece(chain, {0, count});
  communicator_.work().run((count + kShared - 1) / kShared, [&](size_t i) {
    run_piece(chain, {i * kShared, std::min(kShared, count - i * kShared)});
  });
}

void ScheduleRun::run_piece(const Chain& chain, Slice piece) {
  const std::vector<LocalStep>& steps = schedule_.rounds[round_].steps;
  const size_t whole = steps[chain.first].to.count();
  // A single step has no intermediate values to keep in the cache.
  const size_t stride =
      chain.last - chain.first == 1 ? std::max<size_t>(piece.count, 1) : kChainBlock;
  for (size_t begin = piece.begin; begin < piece.end(); begin += stride) {
    const size_t n = std::min(stride, piece.end() - begin);
    for (size_t i = chain.first; i < chain.last; ++i) {
      const LocalStep& step = steps[i];
      const ResolvedStep& where = properties_[round_].steps[i];
      const Run to = at(where.to, begin), a = at(where.a, begin);
      switch (step.kind) {
        case LocalStep::Kind::copy: convert(to, a, n); break;
        case LocalStep::Kind::reduce:
          combine(operands_.op, to, a, at(where.b, begin), n, stride == kChainBlock ? n : whole);
          break;
        case LocalStep::Kind::finish: divide(to, a, operands_.divisor, n); break;
      }
    }
  }
}

}  // namespace tutti::comm
