#pragma once
// Arguments of the kernels that update parameters, and of those that add up squares for them.

#include <cstddef>
#include <cstdint>

#include "tutti/backend/gpu/kernels/numbers.h"

namespace tutti::backend {

constexpr int kUpdateThreads = 256;
constexpr int kUpdateBlock = 1024;  ///< elements that a block of threads updates: kSumBlock
constexpr int kSquareLanes = 16;    ///< threads that share a sum of squares

/// Elements of one parameter, side by side with those of its gradient and states.
struct UpdateStretch {
  int32_t w, g, s;  ///< where they begin, in elements from the first stretch's
  uint32_t count;
  uint32_t first_block;  ///< in the launch, of kUpdateBlock elements
  uint32_t parameter;    ///< among all of the op's
};

/// A parameter, its gradient and its states; null: there is none.
struct UpdateOperands {
  float* w;
  const float* g;
  float *s1, *s2;
};

constexpr uint32_t kMostStretches = 160;

/// The stretches of one launch, which has one block of threads for each of their blocks.
struct UpdateStretches {
  UpdateOperands first;  ///< those of the first stretch
  uint32_t count;
  UpdateStretch at[kMostStretches];
};

/// The rules follow ops/update.h and ops/norm_update.h. `factor` is the attributes' rate, and each
/// element of the scaled gradient is limited to [-limit, limit]. All rules read w and the states;
/// the constants say what else they read and write.
struct SgdRule {
  static constexpr bool kReadsGradient = true, kWritesWeight = true, kWritesStates = true;
  float factor, momentum, decay, limit;
  bool nesterov;
};
struct AdamRule {
  static constexpr bool kReadsGradient = true, kWritesWeight = true, kWritesStates = true;
  const AdamNumbers* numbers;
  double weight_decay;  ///< by which the weights themselves shrink
  float factor, beta1, beta2, new1, new2, eps, decay, limit;
};
struct RmspropRule {
  static constexpr bool kReadsGradient = true, kWritesWeight = true, kWritesStates = true;
  float factor, rho, fresh, eps, decay, limit;
};
struct AverageRule {
  static constexpr bool kReadsGradient = false, kWritesWeight = false, kWritesStates = true;
  const AverageNumbers* numbers;
};
struct LarsRule {
  static constexpr bool kReadsGradient = true, kWritesWeight = true, kWritesStates = true;
  const double* squares;  ///< sums over w and over g, by parameter
  double trust, weight_decay, eps;
  float factor, momentum, decay;
};
/// The direction u of a LAMB step.
struct LambDirection {
  const LambNumbers* numbers;
  float eps, decay;
};
struct LambRule {
  static constexpr bool kReadsGradient = false, kWritesWeight = true, kWritesStates = false;
  const double* squares;  ///< sums over w and over u, by parameter
  LambDirection direction;
  float factor;
};

template <class Rule>
struct UpdateArgs {
  const float *rate, *scale;  ///< the scalars of the op
  Rule rule;
  UpdateStretches stretches;
};

constexpr uint32_t kMostSquareStretches = 80;

/// Blocks of kSumBlock elements of one parameter, the last may be short.
struct SquareStretch {
  const float* x[2];    ///< by column of the sums
  float* sums;          ///< from the first block on, [blocks, columns]
  int64_t count;        ///< elements
  int64_t first_block;  ///< in the launch
};

/// Sums of squares by block, in the order of the CPU's kernels: kSquareLanes threads add up every
/// kSquareLanes-th element in double precision, and a tree adds theirs.
struct SquaresArgs {
  int64_t blocks;  ///< in the launch
  uint32_t count, columns;
  SquareStretch at[kMostSquareStretches];
};

/// Elements of one parameter whose moments are updated, and the sums of its blocks.
struct LambStretch {
  const float *w, *g;
  float *m, *v;
  float* sums;  ///< from the first block on, [blocks, 2]: of squares of w and of u
  int64_t count;
  int64_t first_block;  ///< in the launch
};

constexpr uint32_t kMostLambStretches = 64;

/// The first half of LAMB. The sums are those of SquaresArgs.
struct LambMomentsArgs {
  const float* scale;
  LambDirection direction;
  float beta1, beta2, new1, new2;
  int64_t blocks;  ///< in the launch
  uint32_t count;
  LambStretch at[kMostLambStretches];
};

/// The blocks' sums of one parameter, [count, columns].
struct TreeStretch {
  const float* sums;
  int64_t count, first;  ///< blocks, and how many other parameters have before it
};

constexpr uint32_t kMostTrees = 160;

/// Adds up sums by parameter in the tree of base/numeric/tree_sum.h, a block of threads for each:
/// totals [parameter, columns].
struct TreesArgs {
  double* work;  ///< [blocks of all parameters, columns]
  double* totals;
  uint32_t columns, first_parameter;
  TreeStretch at[kMostTrees];
};

/// Ends ops::ClipScale with the totals of all parameters, which the tree adds up in their place.
struct ClipArgs {
  double* totals;
  int64_t parameters;
  const float* scale;
  double limit, eps;
  float *clipped, *norm;
};

}  // namespace tutti::backend
