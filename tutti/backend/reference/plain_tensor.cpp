#include "tutti/backend/reference/plain_tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace tutti::backend {
namespace {

template <class Integer>
Integer saturate(double value) {
  using Limits = std::numeric_limits<Integer>;
  return static_cast<Integer>(std::clamp(std::nearbyint(value), static_cast<double>(Limits::min()),
                                         static_cast<double>(Limits::max())));
}

}  // namespace

PlainTensor::PlainTensor(const TensorDesc& desc)
    : desc_(desc), place_(static_cast<size_t>(desc.elements())), values_(place_.size()) {
  const Shape& s = desc.shape;
  extent_ = {s.rank() > 0 ? s[0] : 1, s.rank() > 1 ? s[1] : 1, 1, 1, 1};
  for (int d = 2; d < s.rank() && d < 5; ++d) extent_[static_cast<size_t>(5 - s.rank() + d)] = s[d];
  if (place_.empty()) return;
  // An index of one dimension adds the same to a place, whatever the other indices are.
  size_t known = 1;
  for (int d = s.rank() - 1; d >= 0; --d) {
    const std::vector<int64_t> terms = desc.layout.terms(s, d);
    for (size_t i = terms.size(); i-- > 0;)
      for (size_t k = 0; k < known; ++k) place_[i * known + k] = place_[k] + terms[i];
    known *= terms.size();
  }
}

void PlainTensor::fill(double value) { std::ranges::fill(values_, value); }

void PlainTensor::load(const void* memory, Places places) {
  fill(0);
  for (size_t i = 0; i < values_.size(); ++i) {
    if (place_[i] < places.first || place_[i] >= places.last) continue;
    switch (desc_.dtype) {
      case DType::f32: values_[i] = static_cast<const float*>(memory)[place_[i]]; break;
      case DType::bf16:
        values_[i] = static_cast<float>(static_cast<const bf16*>(memory)[place_[i]]);
        break;
      case DType::i32: values_[i] = static_cast<const int32_t*>(memory)[place_[i]]; break;
      case DType::u8: values_[i] = static_cast<const uint8_t*>(memory)[place_[i]]; break;
    }
  }
}

void PlainTensor::store(void* memory) const {
  if (storage_elements() != size()) std::memset(memory, 0, desc_.bytes());
  store(memory, {0, storage_elements()});
}

void PlainTensor::store(void* memory, Places places) const {
  for (size_t i = 0; i < values_.size(); ++i) {
    if (place_[i] < places.first || place_[i] >= places.last) continue;
    switch (desc_.dtype) {
      case DType::f32:
        static_cast<float*>(memory)[place_[i]] = static_cast<float>(values_[i]);
        break;
      case DType::bf16:
        static_cast<bf16*>(memory)[place_[i]] = bf16(static_cast<float>(values_[i]));
        break;
      case DType::i32:
        static_cast<int32_t*>(memory)[place_[i]] = saturate<int32_t>(values_[i]);
        break;
      case DType::u8:
        static_cast<uint8_t*>(memory)[place_[i]] = saturate<uint8_t>(values_[i]);
        break;
    }
  }
}

}  // namespace tutti::backend
