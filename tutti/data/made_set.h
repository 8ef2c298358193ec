#pragma once
// MadeSet is a data set whose samples a function makes.

#include <functional>
#include <utility>
#include <vector>

#include "tutti/data/dataset.h"

namespace tutti::data {

class MadeSet : public Dataset {
 public:
  using Make = std::function<void(int64_t index, Sample& sample)>;

  MadeSet(int64_t size, std::vector<Field> fields, Make make)
      : size_(size), fields_(std::move(fields)), make_(std::move(make)) {}
  int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, Sample& sample) const override { make_(index, sample); }

 private:
  int64_t size_;
  std::vector<Field> fields_;
  Make make_;
};

}  // namespace tutti::data
