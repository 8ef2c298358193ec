#pragma once
// Arguments of the losses and their gradients. Blocks write partial sums, which the block that
// comes last adds up.

#include <cstdint>

#include "tutti/backend/gpu/kernels/loops.h"

namespace tutti::backend {

constexpr int kLossThreads = 256;
/// Elements whose losses a block adds up.
constexpr int64_t kLossRun = kLossThreads * 16;

/// A loss of one element each: those of ops/losses.h, and the divergence of N(x, exp(t)) from
/// N(0, 1).
enum class PairLoss : int32_t { mse, mae, huber, bce_with_logits, gaussian_kl };

/// The end of a loss: writes scale * the sum of parts / divisor.
struct LossTotal {
  double* parts;      ///< by block
  unsigned* counter;  ///< counts the blocks
  float* total;
  double scale, divisor;
};

/// The losses of two operands of one shape.
struct PairLossArgs {
  const void *x, *t;
  LossTotal total;
  int64_t elements;
  Loops<2> loops;  ///< in x and t
  PairLoss kind;
  float delta, pos_weight;
};

/// Gradients, each times `factor`.
struct PairLossGradArgs {
  const void *x, *t;
  void *dx, *dt;  ///< dt: of gaussian_kl only
  int64_t elements;
  Loops<4> loops;  ///< in x, t, dx and dt
  PairLoss kind;
  float delta, pos_weight, factor;
};

/// Sums the weights of labels.
struct LabelWeightArgs {
  const int32_t* labels;
  const float* weights;  ///< [classes]
  LossTotal total;
  int64_t count, classes;
};

/// Logits that a block keeps at hand, where its rows have so few.
constexpr int kKeptLogits = kLossThreads * 17;

/// Cross entropy of a softmax. Its rows are the labels.
struct SoftmaxArgs {
  const void* x;  ///< the logits
  const int32_t* labels;
  const float* weights;  ///< [classes], or null: ones
  int64_t rows, classes;
  Loops<3> loops;  ///< in x, the labels and dx
  int64_t x_step;  ///< between classes
  float smoothing;
  bool kept;      ///< a block's logits fit into kKeptLogits, rows of an odd length
  bool together;  ///< they are kept, and rows lie behind each other in x and dx
};

/// Writes (loss, W).
struct SoftmaxLossArgs {
  SoftmaxArgs softmax;
  double* parts;       ///< [2, blocks]: losses, and the numbers that they are divided by
  bool count_labels;   ///< these numbers are ones, not the labels' weights
  unsigned* counter;   ///< counts the blocks
  const float* given;  ///< W, or null: the sum of the parts
  float *loss, *divisor;
  double scale;
};

struct SoftmaxGradArgs {
  SoftmaxArgs softmax;
  void* dx;
  const float* divisor;  ///< W
  int64_t dx_step;       ///< between classes
  float scale;
  float smooth_weight;  ///< label smoothing gives it to all classes together
};

}  // namespace tutti::backend
