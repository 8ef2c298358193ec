#pragma once
// Quarantine is a data set that skips its bad samples.

#include <cstdint>
#include <memory>
#include <string>

#include "tutti/data/dataset.h"
#include "tutti/data/store/read_counts.h"

namespace tutti::data {

struct QuarantineSpec {
  int64_t most = 0;  ///< bad samples that this process may meet; one more is an error
  std::string part;  ///< part of the data, for messages: "train"
};

/// Replaces a sample that cannot be read (missing, unreadable or damaged file, wrong shape, a value
/// that is no number, a class beyond the field's class_names, a coded image that cannot be decoded)
/// by the next readable one by number; the first follows the last. Faults found after
/// Dataset::read, such as a class for which the network has no output, remain errors. So the
/// choice of samples depends on the files alone, and batches keep their size. Each bad sample is
/// warned of and counted once; IoError when there are more than `most`, or none is sound.
class Quarantine final : public Dataset {
 public:
  Quarantine(std::shared_ptr<const Dataset> all, const QuarantineSpec& spec,
             std::shared_ptr<ReadCounts> counts);
  ~Quarantine() override;

  int64_t size() const override;
  int64_t spacing() const override;
  const std::vector<Field>& fields() const override;
  std::vector<SamplesOfFile> files() const override;
  SampleOrigins origins() const override;
  void read(int64_t index, Sample& sample) const override;

 private:
  class State;
  std::shared_ptr<State> state_;  // shared with readers that may be left behind
};

}  // namespace tutti::data
