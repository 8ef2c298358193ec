#include "tutti/comm/transport/channels.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "tutti/comm/communicator.h"

namespace tutti::comm {

std::unique_ptr<Channel> Channels::open(std::vector<RoundOfMessages> rounds) {
  OpenChannel open = [this](std::vector<RoundOfMessages> plain) {
    return source_.make_channel(std::move(plain), numbers_);
  };
  for (const ChannelDecorator& decorator : decorators_)
    open = [this, &decorator, inner = std::move(open)](std::vector<RoundOfMessages> wanted) {
      return decorator(communicator_, std::move(wanted), inner);
    };
  return open(std::move(rounds));
}

void Channels::connect() { provide(communicator_.most(lacking()) > 0); }

void Channels::take_back() {
  if (!numbers_.due()) return;
  std::vector<uint64_t> marks = numbers_.marks();
  constexpr size_t kPiece = Communicator::kMostCombined / sizeof(uint64_t);
  for (size_t begin = 0; begin < marks.size(); begin += kPiece) {
    const auto piece = std::span(marks).subspan(begin, std::min(kPiece, marks.size() - begin));
    communicator_.combine(std::as_writable_bytes(piece),
                          [&](std::byte* mine, const std::byte* theirs) {
                            for (size_t i = 0; i < piece.size_bytes(); i += sizeof(uint64_t)) {
                              uint64_t a = 0, b = 0;  // bytes of messages are not aligned
                              std::memcpy(&a, mine + i, sizeof a);
                              std::memcpy(&b, theirs + i, sizeof b);
                              a = ChannelNumbers::fold(a, b);
                              std::memcpy(mine + i, &a, sizeof a);
                            }
                          });
  }
  numbers_.settle(marks);
}

}  // namespace tutti::comm
