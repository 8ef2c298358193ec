#include "tutti/device/cuda/libraries/cublaslt_stand_in_algorithms.h"

#include <array>

namespace tutti::device {
namespace {

constexpr uint32_t kInPlace = CUBLASLT_REDUCTION_SCHEME_INPLACE,
                   kInF32 = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE,
                   kInOutput = CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
constexpr std::array kKnown = {
    StandInKnown{{.id = 66, .tile = 393, .stages = 36, .cluster = 3}, 16},
    StandInKnown{
        {.id = 6, .tile = 20, .stages = 15, .parts = 3, .reduction = kInF32, .swizzle = 1}},
    StandInKnown{{.id = 6, .tile = 20, .stages = 15, .parts = 3, .reduction = kInPlace}},
    StandInKnown{{.id = 6, .tile = 20, .stages = 15, .parts = 3, .reduction = kInOutput}},
    StandInKnown{{.id = 6, .tile = 20, .stages = 15, .parts = 1 << 24, .reduction = kInF32}},
    StandInKnown{{.id = 21, .tile = 18, .custom = 7, .inner = 4}},
    StandInKnown{{.id = 0, .tile = 15}},
    StandInKnown{{.id = 0, .tile = 15}},
    StandInKnown{{.id = 2, .tile = 11, .parts = 0}},
    StandInKnown{{.id = 2, .tile = 12}},
    StandInKnown{{.id = 2, .tile = 13}},
    StandInKnown{{.id = 2, .tile = 14}},
    StandInKnown{{.id = 2, .tile = 16}},
    StandInKnown{{.id = 2, .tile = 17}},
};

}  // namespace

StandInTypes types_of(const StandInProduct& p) {
  return {p.operation.compute, p.a.type, p.b.type, p.c.type, p.d.type};
}

std::span<const StandInKnown> stand_in_algorithms() { return kKnown; }

size_t workspace_of(const StandInSettings& settings, const StandInProduct& p) {
  if (settings.id == 66) return 1000;
  return settings.parts > 1 ? p.rows * p.columns * 4 * static_cast<size_t>(settings.parts) : 0;
}

bool suits(const StandInKnown& known, const StandInProduct& p,
           const StandInPreference& preference) {
  for (const StandInLayout& one : {p.a, p.b, p.c, p.d})
    if (static_cast<size_t>(one.stride) * one.element_bytes() % known.alignment != 0) return false;
  for (const uint32_t alignment : {preference.a, preference.b, preference.c, preference.d})
    if (alignment < known.alignment) return false;
  return true;
}

bool is_allowed(const StandInKnown& known, const StandInProduct& p,
                const StandInPreference& preference) {
  const uint32_t reduction = known.settings.reduction;
  return workspace_of(known.settings, p) <= preference.workspace &&
         (reduction & preference.reductions) == reduction;
}

}  // namespace tutti::device
