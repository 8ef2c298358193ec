#include "tutti/comm/run/block_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "tutti/comm/communicator.h"
#include "tutti/comm/run/message.h"
#include "tutti/comm/run/plan_error.h"

namespace tutti::comm {
namespace {

// Above the tags of a program's own messages, and below the largest tag that every MPI has.
constexpr int kBlockTag = MessageSpec::kMostTag + 1;

// Calls body for every other rank, the right neighbour first, so that no two ranks begin alike.
template <class Body>
void for_each_other_rank(const Communicator& communicator, Body body) {
  for (int k = 1; k < communicator.size(); ++k)
    body((communicator.rank() + k) % communicator.size());
}

// Returns the bytes from the beginning of the first block to the end of the last.
std::span<const std::byte> around(const std::byte* buffer, const std::vector<Slice>& blocks) {
  size_t begin = SIZE_MAX, end = 0;
  for (const Slice& block : blocks) {
    if (block.count == 0) continue;
    begin = std::min(begin, block.begin);
    end = std::max(end, block.end());
  }
  return end == 0 ? std::span<const std::byte>() : std::span(buffer + begin, end - begin);
}

}  // namespace

BlockExchange::BlockExchange(Communicator& communicator, BlockExchangeSpec spec)
    : Operation(communicator,
                spec.name.empty() ? "exchange" : fmt::format("exchange '{}'", spec.name)),
      spec_(std::move(spec)) {
  const auto check = [&](const std::vector<Slice>& blocks, const void* buffer, const char* what) {
    if (blocks.size() != static_cast<size_t>(communicator.size()))
      throw PlanError(fmt::format("{}: {} blocks are {} among {} ranks", name(), blocks.size(),
                                  what, communicator.size()));
    const bool empty = std::ranges::all_of(blocks, [](const Slice& b) { return b.count == 0; });
    if (!empty && buffer == nullptr)
      throw PlanError(fmt::format("{}: blocks are {} without a buffer", name(), what));
  };
  check(spec_.sends, spec_.input, "sent");
  check(spec_.receives, spec_.output, "received");
  if (overlap(around(spec_.input, spec_.sends), around(spec_.output, spec_.receives)))
    throw PlanError(fmt::format(
        "{}: input and output overlap on rank {}: a block would arrive where another one has yet "
        "to leave",
        name(), communicator.rank()));
  if (const auto two = overlapping(spec_.receives))
    throw PlanError(
        fmt::format("{}: on rank {} the blocks from ranks {} and {} overlap in the output", name(),
                    communicator.rank(), (*two)[0], (*two)[1]));
  const auto mine = static_cast<size_t>(communicator.rank());
  if (spec_.sends[mine].count != spec_.receives[mine].count)
    throw PlanError(fmt::format("{}: rank {} sends itself {} bytes and receives {}", name(),
                                communicator.rank(), spec_.sends[mine].count,
                                spec_.receives[mine].count));
  set_priority(spec_.priority);
}

BlockExchange::~BlockExchange() { withdraw(); }

void BlockExchange::begin() {
  const int tag = Wire::tag_of_user(kBlockTag);
  step_ = ++communicator().exchanges_;
  messages_ = communicator().messages();
  senders_.clear();
  // Because empty blocks travel too, a block where the other rank expects none is found, and no
  // rank gets further ahead of another than one exchange.
  for_each_other_rank(communicator(), [&](int peer) {
    const Slice& block = spec_.receives[static_cast<size_t>(peer)];
    Wire::for_each_message(block.count, [&](size_t begin, size_t bytes) {
      std::byte* const at = bytes == 0 ? nullptr : spec_.output + block.begin + begin;
      messages_->receive(at, bytes, peer, tag);
      senders_.push_back(peer);
    });
  });
  for_each_other_rank(communicator(), [&](int peer) {
    const Slice& block = spec_.sends[static_cast<size_t>(peer)];
    Wire::for_each_message(block.count, [&](size_t begin, size_t bytes) {
      const std::byte* const at = bytes == 0 ? nullptr : spec_.input + block.begin + begin;
      messages_->send(at, bytes, peer, tag);
    });
  });
  const auto mine = static_cast<size_t>(communicator().rank());
  if (const Slice& kept = spec_.sends[mine]; kept.count > 0)
    std::memcpy(spec_.output + spec_.receives[mine].begin, spec_.input + kept.begin, kept.count);
}

bool BlockExchange::advance() {
  if (!messages_->test()) return false;
  messages_.reset();
  return true;
}

Pending BlockExchange::describe() const {
  Pending what{.operation = name(), .sequence = step_, .arrived = {}, .missing = {}};
  for (size_t i = 0; messages_ && i < senders_.size(); ++i)
    if (messages_->done(i))
      ++what.passed;
    else
      what.missing.push_back(senders_[i]);
  std::ranges::sort(what.missing);
  what.missing.erase(std::ranges::unique(what.missing).begin(), what.missing.end());
  for (int p = 0; p < communicator().size(); ++p)
    if (!std::ranges::binary_search(what.missing, p)) what.arrived.push_back(p);
  return what;
}

}  // namespace tutti::comm
