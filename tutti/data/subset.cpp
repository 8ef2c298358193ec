#include "tutti/data/subset.h"

#include <algorithm>
#include <cmath>

#include "tutti/base/error.h"
#include "tutti/data/sampler.h"

namespace tutti::data {

Subset::Subset(std::shared_ptr<const Dataset> whole, std::vector<uint32_t> samples)
    : whole_(std::move(whole)), samples_(std::move(samples)) {}

ValidationCut cut_validation(std::unique_ptr<Dataset> whole, int64_t count, uint64_t seed) {
  const std::shared_ptr<const Dataset> all = std::move(whole);
  if (count < 1 || count >= all->size())
    throw ConfigError(fmt::format(
        "data.validation takes {} of the {} training samples: give a fraction or a count that "
        "leaves at least one sample in each part",
        count, all->size()));
  // An epoch that no run has, so that the cut is not the order of one.
  std::vector<uint32_t> order = epoch_permutation(seed, -1, all->size());
  const auto middle = order.begin() + count;
  std::sort(order.begin(), middle);
  std::sort(middle, order.end());
  return {
      .train = std::make_unique<Subset>(all, std::vector<uint32_t>(middle, order.end())),
      .validation = std::make_unique<Subset>(all, std::vector<uint32_t>(order.begin(), middle))};
}

int64_t validation_count(double share, int64_t size) {
  return static_cast<int64_t>(share < 1 ? std::floor(share * static_cast<double>(size)) : share);
}

}  // namespace tutti::data
