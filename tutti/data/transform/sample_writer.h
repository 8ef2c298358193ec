#pragma once
// A SampleWriter writes the fields of one sample to their places in the minibatch.

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
  std::optional<BatchRows> rows = {};  ///< the rows that are needed; none: all
  int64_t classes = 0;                 ///< number of output classes of the network; 0: none
};

/// Immutable: calls for different positions may run on different threads.
class SampleWriter {
 public:
  /// `steps`: for some fields of the data set; a field without steps is used unchanged. ConfigError
  /// if a field is missing, appears twice, does not fit, or has more classes than the network.
  SampleWriter(const Dataset& dataset, std::span<const BatchField> fields,
               std::span<const FieldSteps> steps, uint64_t seed);

  /// Tensors of a minibatch, in the order of the given fields.
  size_t size() const { return writers_.size(); }
  const TensorDesc& desc(size_t i) const { return writers_[i].writer.batch(); }
  const ValueFunction& values(size_t i) const { return writers_[i].writer.values(); }

  /// Writes sample `index` of the data set to `position` of the minibatch. `epoch`: of training;
  /// none: no random choices. ConfigError if a label is none of the network's classes.
  void write(const Sample& sample, std::optional<int64_t> epoch, int64_t index, int64_t position,
             std::span<void* const> batch) const;
  /// Says whether some field is not needed completely; wanted_rows() gets the rows for read_rows(),
  /// for each field of the data set.
  bool reads_rows() const { return reads_rows_; }
  void wanted_rows(std::optional<int64_t> epoch, int64_t index, std::vector<FieldRows>& rows) const;

 private:
  struct Writer {
    size_t field;  // index in the data set
    // If neither is set, the writer takes the stored field.
    std::optional<DerivedField> derived;
    std::optional<ImageField> image;
    FieldWriter writer;
    int64_t classes = 0;  // labels must be below; 0: numbers, or checked by the data set
  };
  std::vector<Writer> writers_;
  uint64_t seed_;
  bool has_chance_ = false, reads_rows_ = false;
  std::vector<Field> fields_;  // fields of the data set
};

}  // namespace tutti::data
