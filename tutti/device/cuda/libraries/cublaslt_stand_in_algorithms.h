#pragma once
// The algorithms of the stand-in of cuBLASLt.

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "tutti/device/cuda/libraries/cublaslt_stand_in_product.h"

namespace tutti::device {

/// An algorithm, as its attributes tell it.
struct StandInSettings {
  int32_t id = 0;
  uint32_t tile = 0, stages = 0;
  int32_t parts = 1;  ///< that a sum is cut into
  uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_NONE, swizzle = 0, custom = 0;
  uint16_t inner = 0, cluster = 0;
  bool operator==(const StandInSettings&) const = default;
};

struct StandInTypes {
  cublasComputeType_t compute;
  cudaDataType_t a, b, c, d;
  bool operator==(const StandInTypes&) const = default;
};
StandInTypes types_of(const StandInProduct& product);

/// The contents of a cublasLtMatmulAlgo_t.
struct StandInAlgorithm {
  static constexpr uint32_t kMark = 0x7574746a;
  uint32_t mark = kMark;
  StandInSettings settings;
  StandInTypes types = {};
};
static_assert(sizeof(StandInAlgorithm) <= sizeof(cublasLtMatmulAlgo_t));

struct StandInPreference {
  uint64_t workspace = 0;
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t a = 256, b = 256, c = 256, d = 256;  ///< how operands are aligned, in bytes
};

struct StandInKnown {
  StandInSettings settings;
  uint32_t alignment = 2;  ///< multiple at which operands and their columns begin, in bytes
};
/// Returns them as heuristics offer them, of which one is there twice.
std::span<const StandInKnown> stand_in_algorithms();

size_t workspace_of(const StandInSettings& settings, const StandInProduct& product);
/// Returns whether one computes the product with operands that are so aligned.
bool suits(const StandInKnown& known, const StandInProduct& product,
           const StandInPreference& preference);
/// Returns whether its workspace and the order of its sums are those that are preferred.
bool is_allowed(const StandInKnown& known, const StandInProduct& product,
                const StandInPreference& preference);

}  // namespace tutti::device
