#include "tutti/train/data_identity.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace tutti {

std::string data_identity(const data::Dataset& dataset) {
  constexpr int64_t kMostBytes = 64 << 20, kFewestImages = 64;
  const data::ImageShape shape = dataset.shape();
  const int64_t affordable =
                    std::max(kFewestImages, kMostBytes / std::max<int64_t>(shape.pixels(), 1)),
                read = std::min(dataset.size(), affordable);
  const auto release = [](XXH64_state_t* state) { XXH64_freeState(state); };
  const std::unique_ptr<XXH64_state_t, decltype(release)> hash(XXH64_createState(), release);
  XXH64_reset(hash.get(), 0);
  std::vector<uint8_t> pixels(static_cast<size_t>(shape.pixels()));
  for (int64_t i = 0; i < read; ++i) {
    int32_t label = 0;
    // 128 bits are not needed: sizes stay far below 2^40, `read` below 2^26.
    dataset.read(i * dataset.size() / read, pixels.data(), &label);
    XXH64_update(hash.get(), pixels.data(), pixels.size());
    XXH64_update(hash.get(), &label, sizeof label);
  }
  return fmt::format("{} images of {}x{}x{} in {} classes, checksum {:016x}", dataset.size(),
                     shape.channels, shape.height, shape.width, dataset.classes(),
                     XXH64_digest(hash.get()));
}

}  // namespace tutti
