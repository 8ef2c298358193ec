#pragma once
// SampleWriter: the fields of one sample, each to its place in the minibatch.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/data/dataset.h"
#include "tutti/data/transform/derived_field.h"
#include "tutti/data/transform/field_writer.h"
#include "tutti/data/transform/image_field.h"

namespace tutti::data {

/// A tensor of a minibatch and the field that fills it.
struct BatchField {
  std::string field;
  TensorDesc desc;                     ///< [N, placed field ...]
  std::optional<BatchRows> rows = {};  ///< what is needed of it; none: all
  int64_t classes = 0;                 ///< class numbers the network has outputs for; 0: numbers
};

/// Immutable: calls for different positions may run on different threads.
class SampleWriter {
 public:
  /// `steps`: of some fields of the data set; a field without any is taken as it is. ConfigError
  /// where a field is not there, twice there, does not fit, or has more classes than the network.
  SampleWriter(const Dataset& dataset, std::span<const BatchField> fields,
               std::span<const FieldSteps> steps, uint64_t seed);

  /// Tensors of a minibatch, in the order of the fields given.
  size_t size() const { return writers_.size(); }
  const TensorDesc& desc(size_t i) const { return writers_[i].writer.batch(); }
  const ValueFunction& values(size_t i) const { return writers_[i].writer.values(); }

  /// Sample `index` of the data set to `position` of the minibatch. `epoch`: of training; none: no
  /// chance. ConfigError where a label is none of the network's classes.
  void write(const Sample& sample, std::optional<int64_t> epoch, int64_t index, int64_t position,
             std::span<void* const> batch) const;
  /// Whether of some field not all is needed; what, of each field of the data set, for read_rows().
  bool reads_rows() const { return reads_rows_; }
  void wanted_rows(std::optional<int64_t> epoch, int64_t index, std::vector<FieldRows>& rows) const;

 private:
  struct Writer {
    size_t field;  // of the data set
    // Neither: the writer takes the stored field.
    std::optional<DerivedField> derived;
    std::optional<ImageField> image;
    FieldWriter writer;
    int64_t classes = 0;  // labels are to be below; 0: numbers, or checked by the data set
  };
  std::vector<Writer> writers_;
  uint64_t seed_;
  bool has_chance_ = false, reads_rows_ = false;
  std::vector<Field> fields_;  // of the data set
};

}  // namespace tutti::data
