#pragma once
// The stand-in of cuBLASLt, as tests see it: what they tell it, and what it tells them.

#include <cublasLt.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tutti::device {

struct CublasLtStandIn {
  // A test sets these.
  size_t version = CUBLAS_VERSION;
  bool has_device = true;
  bool has_algorithms = true;  ///< else its heuristics offer none
  /// Its heuristics offer what the preferences exclude, and algorithms that round f32 factors.
  bool is_careless = false;
  int calls_until_failure = 0;  ///< the call that fails of those to come; 0: none does
  std::vector<std::span<const std::byte>> memory;  ///< where operands may lie
  const void* stream = nullptr;                    ///< the one that work may be put on

  // It sets these.
  int live = 0;         ///< descriptors and handles that were made and not ended
  std::string refusal;  ///< why it has refused the last call that it refused
  std::vector<cublasLtMatmulAlgo_t> offered;  ///< by the last call of its heuristics
  cublasLtMatmulAlgo_t used = {};             ///< by the last product
};

}  // namespace tutti::device

/// Returns the only one.
extern "C" tutti::device::CublasLtStandIn* tutti_cublaslt_stand_in();
