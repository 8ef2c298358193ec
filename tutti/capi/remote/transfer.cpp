#include "tutti/capi/remote/transfer.h"

#include <algorithm>
#include <utility>

namespace tutti::capi::remote {
namespace {

constexpr size_t kAhead = 8;  // pieces under way: as much as a fast network holds in a round trip

}  // namespace

Transfer::Transfer(Way way, std::span<std::byte> data, Route route, comm::Pacer& pacer,
                   int priority)
    : way_(way), data_(data), route_(std::move(route)), pacer_(pacer) {
  if (way_ == Way::send) pacer_.enter(flow_, priority);
  try {
    advance();
  } catch (...) {
    pacer_.leave(flow_);  // no destructor will do it
    throw;
  }
}

bool Transfer::may_post() {
  return posted_ < data_.size() && under_way_.size() < kAhead &&
         (way_ == Way::receive || pacer_.may_begin(flow_));
}

void Transfer::post() {
  const size_t n = std::min(kPiece, data_.size() - posted_);
  auto& piece = under_way_.emplace_back(route_.messages());
  if (way_ == Way::send)
    piece->send(data_.data() + posted_, n, route_.peer, route_.tag);
  else
    piece->receive(data_.data() + posted_, n, route_.peer, route_.tag);
  posted_ += n;
}

bool Transfer::advance() {
  const size_t were_leaving = posted_ - done_;
  const auto note = [&] {
    if (way_ == Way::send)
      pacer_.note(flow_, posted_ - done_, were_leaving, posted_ < data_.size());
  };
  // Only the first is tested: pieces have equal tags, and come in their order.
  while (!under_way_.empty() && under_way_.front()->test()) {
    under_way_.pop_front();
    done_ += std::min(kPiece, data_.size() - done_);
  }
  for (note(); may_post(); note()) post();
  return done_ == data_.size();
}

}  // namespace tutti::capi::remote
