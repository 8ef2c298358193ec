#include "tutti/comm/check/checked_channel.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "tutti/base/error.h"
#include "tutti/comm/communicator.h"

namespace tutti::comm {
namespace {

size_t count_pieces(size_t bytes) {
  return (bytes + CheckedChannel::kPiece - 1) / CheckedChannel::kPiece;
}
size_t piece_bytes(size_t bytes, size_t piece) {
  return std::min(CheckedChannel::kPiece, bytes - piece * CheckedChannel::kPiece);
}
uint64_t checksum(const std::byte* data, size_t bytes, size_t piece) {
  return XXH3_64bits(data + piece * CheckedChannel::kPiece, piece_bytes(bytes, piece));
}

// Adds to `items` a message of checksums for each message with bytes, and its memory to `sums`.
void accompany(std::vector<RoundOfMessages::Item>& items,
               std::vector<std::vector<uint64_t>>& sums) {
  const size_t messages = items.size();
  for (size_t i = 0; i < messages; ++i) {
    auto& sum = i < sums.size() ? sums[i] : sums.emplace_back(count_pieces(items[i].bytes));
    if (!sum.empty())
      items.push_back(
          {items[i].peer, reinterpret_cast<std::byte*>(sum.data()), sum.size() * sizeof(uint64_t)});
  }
}

}  // namespace

CheckedChannel::CheckedChannel(Communicator& communicator, std::vector<RoundOfMessages> rounds,
                               const OpenChannel& inner)
    : ChannelAround(std::move(rounds)), communicator_(communicator), outgoing_(rounds_.size()),
      incoming_(rounds_.size()) {
  inner_ = inner(accompanied());
}

// The memory of checksums does not move: a message has the same number of bytes wherever it moves.
std::vector<RoundOfMessages> CheckedChannel::accompanied() {
  std::vector<RoundOfMessages> all = rounds_;
  for (size_t r = 0; r < all.size(); ++r) {
    accompany(all[r].receives, incoming_[r]);
    accompany(all[r].sends, outgoing_[r]);
  }
  return all;
}

void CheckedChannel::post(size_t round) {
  verified_ = false;
  const auto& sends = rounds_[round].sends;
  for (size_t i = 0; i < sends.size(); ++i) {
    Sums& sums = outgoing_[round][i];
    for (size_t piece = 0; piece < sums.size(); ++piece)
      sums[piece] = checksum(sends[i].data, sends[i].bytes, piece);
  }
  ChannelAround::post(round);
}

bool CheckedChannel::received() {
  if (!inner_->received()) return false;
  if (!verified_) verify();
  verified_ = true;
  return true;
}

void CheckedChannel::verify() const {
  size_t sums = rounds_[round_].receives.size();  // the checksums of a message follow all messages
  for (size_t i = 0; i < rounds_[round_].receives.size(); ++i)
    if (!incoming_[round_][i].empty()) compare(i, inner_->where(sums++));
}

void CheckedChannel::compare(size_t receive, const std::byte* sums) const {
  const auto& item = rounds_[round_].receives[receive];
  const std::byte* const data = inner_->where(receive);
  for (size_t piece = 0; piece < incoming_[round_][receive].size(); ++piece) {
    uint64_t expected = 0;
    std::memcpy(&expected, sums + piece * sizeof expected, sizeof expected);
    const uint64_t found = checksum(data, item.bytes, piece);
    if (found == expected) continue;
    const size_t begin = piece * kPiece;
    throw CommError(
        fmt::format("round {}, message {} from {} to {}: bytes [{}, {}) of {} are not what was "
                    "sent (checksum {:016x}, the sender's is {:016x}): "
                    "a faulty link, memory or processor on one of these hosts, or a program that "
                    "wrote to them meanwhile",
                    round_, receive, communicator_.rank_name(item.peer),
                    communicator_.rank_name(communicator_.rank()), begin,
                    begin + piece_bytes(item.bytes, piece), item.bytes, found, expected));
  }
}

}  // namespace tutti::comm
