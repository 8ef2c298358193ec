#pragma once
// One line of text = one op on one shape, so that a failure can be repeated and a benchmark be
// requested by hand:
//   OP DTYPE EXTENTS [KERNEL] [word | wordNUMBER | wordNUMBERxNUMBER...]...
//   conv bf16 n8c16h32w32 k16r3s3 stride1 pad1 relu
//     EXTENTS describe x; the kernel is k x (c / groups) x [t x] r x s
//   conv_backward_weights f32 n2c4d8h8w8 k8t3r3s3 pad1
//     the shapes are the convolution's in every direction
//   pool f32 n8c16h32w32 max r3s3 stride2 pad1
//   dense f32 n8c64 k10 bias
//   slice f32 n2c8h9 step2
//   sgd_update f32 n1000 momentum0.9

#include <memory>
#include <string_view>
#include <utility>

#include "tutti/backend/conformance/op_run.h"

namespace tutti::backend {

/// The kind of random numbers an operand gets, for kernels that do not accept every number. `ties`
/// are few different numbers, and NaNs among them: for maxima.
enum class Fill : uint8_t { normal, positive, unit, label, ties };

struct OpCase {
  std::string text;
  OpProblem problem;
  std::vector<Fill> fill;  ///< per input
  int64_t labels = 0;      ///< Fill::label draws from [0, labels)

  /// Makes the op out of its constructor's arguments.
  template <class Op, class... Args>
  void use(Args&&... args) {
    problem.op = std::make_shared<Op>(std::forward<Args>(args)...);
  }
  /// Makes an A if `is_a`, else a B, out of the same arguments.
  template <class A, class B, class... Args>
  void use_either(bool is_a, Args&&... args) {
    return is_a ? use<A>(std::forward<Args>(args)...) : use<B>(std::forward<Args>(args)...);
  }
};

/// Parses a line. Throws ConfigError naming the word that is not understood.
OpCase parse_op_case(std::string_view text);

/// Returns random inputs, the same for the same seed everywhere.
std::vector<Values> random_inputs(const OpCase& op_case, uint64_t seed);

/// Returns the lines that tests check and `tutti bench ops` times: every op, f32 and bf16, shapes
/// with and without round numbers.
std::vector<std::string> conformance_lines();

}  // namespace tutti::backend
