#pragma once
// A Subset is some samples of a data set; cut_validation takes a validation set from a training
// set.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tutti/data/dataset.h"

namespace tutti::data {

class Subset final : public Dataset {
 public:
  /// Sample i is sample `samples[i]` of `whole`, which both parts of a cut share.
  Subset(std::shared_ptr<const Dataset> whole, std::vector<uint32_t> samples);

  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  const std::vector<Field>& fields() const override { return whole_->fields(); }
  void read(int64_t index, Sample& sample) const override {
    whole_->read(samples_[static_cast<size_t>(index)], sample);
  }
  void read_rows(int64_t index, Sample& sample, std::span<const FieldRows> rows) const override {
    whole_->read_rows(samples_[static_cast<size_t>(index)], sample, rows);
  }
  std::vector<SamplesOfFile> files() const override;
  SampleOrigins origins() const override;
  const Dataset& whole() const { return *whole_; }

 private:
  std::shared_ptr<const Dataset> whole_;
  std::vector<uint32_t> samples_;
};

/// Both parts of a cut, each in the order of the original set.
struct ValidationCut {
  std::unique_ptr<Dataset> train, validation;
};

/// Takes `count` samples out: the first ones of a permutation that depends only on the seed and the
/// size. ConfigError unless both parts have samples.
ValidationCut cut_validation(std::unique_ptr<Dataset> whole, int64_t count, uint64_t seed);

/// Returns how many of `size` samples `share` means: below 1 a fraction, rounded down; from 1 on a
/// count.
int64_t validation_count(double share, int64_t size);

}  // namespace tutti::data
