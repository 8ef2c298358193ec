#include "tutti/data/subset.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"

namespace tutti::data {
namespace {

/// Returns a permutation by Fisher and Yates (Durstenfeld, CACM 7, 1964). It is stored, unlike the
/// order of an epoch: both parts of a cut keep sorted lists, so that a file's samples stay
/// together.
std::vector<uint32_t> stored_permutation(uint64_t seed, int64_t size) {
  CHECK(size <= std::numeric_limits<uint32_t>::max(), "{} samples", size);
  std::vector<uint32_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0u);
  Rng rng(seed, Purpose::shuffle, static_cast<uint64_t>(-1));  // a stream that no epoch uses
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[rng.below(static_cast<uint32_t>(i))]);
  return order;
}

}  // namespace

Subset::Subset(std::shared_ptr<const Dataset> whole, std::vector<uint32_t> samples)
    : whole_(std::move(whole)), samples_(std::move(samples)) {}

std::vector<SamplesOfFile> Subset::files() const {
  std::vector<SamplesOfFile> own;
  if (!std::ranges::is_sorted(samples_)) return own;
  auto next = samples_.begin();
  int64_t end = 0;
  for (SamplesOfFile& of : whole_->files()) {
    end += of.samples;
    const auto behind = std::find_if(next, samples_.end(), [&](uint32_t i) { return i >= end; });
    if (behind != next) own.push_back({std::move(of.file), behind - next});
    next = behind;
  }
  return own;
}

SampleOrigins Subset::origins() const {
  const SampleOrigins all = whole_->origins();
  SampleOrigins own{.files = all.files};
  for (const uint32_t i : samples_) {
    own.number.push_back(all.number[i]);
    if (!all.file.empty()) own.file.push_back(all.file[i]);
    if (!all.row.empty()) own.row.push_back(all.row[i]);
  }
  return own;
}

ValidationCut cut_validation(std::unique_ptr<Dataset> whole, int64_t count, uint64_t seed) {
  const std::shared_ptr<const Dataset> all = std::move(whole);
  if (count < 1 || count >= all->size()) {
    const std::string how = all->size() == 1 ? all->how() : "";
    throw ConfigError(fmt::format(
        "data.validation takes {} of the {} training sample{}{}: give a fraction or a count that "
        "leaves at least one sample in each part",
        count, all->size(), all->size() == 1 ? "" : "s",
        how.empty() ? "" : fmt::format(" ({})", how)));
  }
  if (all->size() > std::numeric_limits<uint32_t>::max())
    throw ConfigError(
        fmt::format("data.validation cannot take samples out of a set of {}: it is limited to "
                    "2^32 - 1; name data.validation_files",
                    all->size()));
  std::vector<uint32_t> order = stored_permutation(seed, all->size());
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
