#include "tutti/base/numeric/rng.h"

#include <algorithm>

namespace tutti {

void Rng::draw() {
  used_ = 0;
  if (counter_ < kAhead) {  // most streams end here
    const std::array<uint32_t, 4> block =
        philox({static_cast<uint32_t>(counter_), static_cast<uint32_t>(counter_ >> 32),
                static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)},
               key_);
    std::copy(block.begin(), block.end(), numbers_.begin());
    ++counter_;
    drawn_ = block.size();
    return;
  }
  std::array<std::array<uint32_t, kAhead>, 4> words;
  philox_blocks(key_, stream_, counter_, words);
  for (size_t i = 0; i < kAhead; ++i)
    for (size_t w = 0; w < 4; ++w) numbers_[4 * i + w] = words[w][i];
  counter_ += kAhead;
  drawn_ = numbers_.size();
}

}  // namespace tutti
