#pragma once
// Numbers that change from step to step, as kernels read them from memory of the device
// (Kernel::write_numbers).

#include <cstdint>

namespace tutti::backend {

/// Names the step for which random numbers are drawn, as in ops::SampleKey.
struct DrawNumbers {
  uint32_t seed_low, seed_high, step, replica;
};

/// The corrections of Adam's moments.
struct AdamNumbers {
  double unseen;  ///< 1 - beta1^t
  float root;     ///< 1 / sqrt(1 - beta2^t)
};

/// The corrections of LAMB's moments, a pack.
struct alignas(8) LambNumbers {
  float correction;  ///< 1 / (1 - beta1^t)
  float root;        ///< 1 / sqrt(1 - beta2^t)
};

struct AverageNumbers {
  float part;  ///< the weight of the newest weights
};

}  // namespace tutti::backend
