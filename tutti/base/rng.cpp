#include "tutti/base/rng.h"

#include <algorithm>

namespace tutti {

void Rng::draw() {
  used_ = 0;
  const auto low = static_cast<uint32_t>(stream_), high = static_cast<uint32_t>(stream_ >> 32);
  if (counter_ < kAhead) {  // most streams end here
    const std::array<uint32_t, 4> block = philox(
        {static_cast<uint32_t>(counter_), static_cast<uint32_t>(counter_ >> 32), low, high}, key_);
    std::copy(block.begin(), block.end(), numbers_.begin());
    ++counter_;
    drawn_ = 4;
    return;
  }
  std::array<std::array<uint32_t, kAhead>, 4> words;
  for (size_t i = 0; i < kAhead; ++i) {
    words[0][i] = static_cast<uint32_t>(counter_ + i);
    words[1][i] = static_cast<uint32_t>((counter_ + i) >> 32);
    words[2][i] = low;
    words[3][i] = high;
  }
  philox(words, key_);
  for (size_t i = 0; i < kAhead; ++i)
    for (size_t w = 0; w < 4; ++w) numbers_[4 * i + w] = words[w][i];
  counter_ += kAhead;
  drawn_ = 4 * kAhead;
}

}  // namespace tutti
