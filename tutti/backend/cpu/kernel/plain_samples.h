#pragma once
// Reads activations as rows of a matrix, one a sample, whatever their layout.

#include "tutti/backend/cpu/kernel/box_copy.h"
#include "tutti/backend/cpu/kernel/sample.h"

namespace tutti::backend {

/// x as rows of plain samples: in place if it is plain, otherwise gathered into `memory`.
template <class T>
class PlainSamples {
 public:
  explicit PlainSamples(const TensorDesc& d)
      : samples_(d.shape[0]), size_(sample_size(d)),
        gather_(terms_of(d), terms_of({d.dtype, d.shape, {}})),
        scatter_(terms_of({d.dtype, d.shape, {}}), terms_of(d)) {}
  int64_t samples() const { return samples_; }
  int64_t size() const { return size_; }
  bool in_place() const { return gather_.in_place(); }
  size_t bytes() const {
    return in_place() ? 0 : static_cast<size_t>(samples_ * size_) * sizeof(T);
  }

  const T* gather(const T* x, void* memory) const {
    if (in_place()) return x;
    gather_.run(x, memory, sizeof(T));
    return static_cast<const T*>(memory);
  }
  void scatter(const T* plain, T* x) const { scatter_.run(plain, x, sizeof(T)); }

 private:
  int64_t samples_, size_;
  BoxCopy gather_, scatter_;
};

}  // namespace tutti::backend
