// A library in the place of cuBLASLt, for cublaslt_test.cpp: those functions of it that Tutti
// calls, under their names. It refuses what cublasLt.h forbids and what Tutti has no reason to ask
// for, and computes on memory of the host, in double precision.

#include "tutti/device/cuda/libraries/cublaslt_stand_in.h"

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <optional>

#include "tutti/device/cuda/libraries/cublaslt_stand_in_algorithms.h"
#include "tutti/device/cuda/libraries/cublaslt_stand_in_product.h"

struct cublasLtContext {};

namespace tutti::device {
namespace {

CublasLtStandIn told;

cublasStatus_t refuse(cublasStatus_t status, const char* reason) {
  told.refusal = reason;
  return status;
}
cublasStatus_t refuse(const char* reason) { return refuse(CUBLAS_STATUS_INVALID_VALUE, reason); }

/// Counts a call, and returns whether it is the one that fails.
bool fails() { return told.calls_until_failure > 0 && --told.calls_until_failure == 0; }

/// The descriptors of one kind that were made and not ended.
template <class Opaque, class Value>
class Live {
 public:
  cublasStatus_t add(Opaque** made, Value value) {
    if (!made) return refuse("nowhere to put a descriptor");
    if (fails()) return refuse(CUBLAS_STATUS_ALLOC_FAILED, "asked to");
    auto opaque = std::make_unique<Opaque>();
    *made = opaque.get();
    all_[*made] = {std::move(opaque), value};
    ++told.live;
    return CUBLAS_STATUS_SUCCESS;
  }
  /// Returns null if there is none.
  Value* find(const Opaque* which) {
    const auto found = all_.find(which);
    return found == all_.end() ? nullptr : &found->second.second;
  }
  cublasStatus_t remove(const Opaque* which) {
    if (all_.erase(which) == 0) return refuse("a descriptor that is not");
    --told.live;
    return CUBLAS_STATUS_SUCCESS;
  }

 private:
  std::map<const Opaque*, std::pair<std::unique_ptr<Opaque>, Value>> all_;
};

Live<cublasLtContext, char> handles;
Live<cublasLtMatrixLayoutOpaque_t, StandInLayout> layouts;
Live<cublasLtMatmulDescOpaque_t, StandInOperation> operations;
Live<cublasLtMatmulPreferenceOpaque_t, StandInPreference> preferences;

template <class T>
cublasStatus_t take(T& to, const void* value, size_t bytes) {
  if (!value || bytes != sizeof(T)) return refuse("an attribute of another size");
  if (fails()) return refuse(CUBLAS_STATUS_ALLOC_FAILED, "asked to");
  std::memcpy(&to, value, sizeof(T));
  return CUBLAS_STATUS_SUCCESS;
}

/// Reads what the descriptors ask for; none if they are at odds.
std::optional<StandInProduct> product_of(cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
                                         cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                         cublasLtMatrixLayout_t d) {
  const StandInOperation* const what = operations.find(operation);
  const StandInLayout *const of_a = layouts.find(a), *const of_b = layouts.find(b),
                             *const of_c = layouts.find(c), *const of_d = layouts.find(d);
  if (!what || !of_a || !of_b || !of_c || !of_d) {
    refuse("a descriptor that is not");
    return {};
  }
  StandInProduct product{.operation = *what, .a = *of_a, .b = *of_b, .c = *of_c, .d = *of_d};
  const char* const conflict = complete(product);
  if (!*conflict) return product;
  refuse(conflict);
  return {};
}

void write(cublasLtMatmulAlgo_t& to, const StandInAlgorithm& algorithm) {
  to = {};
  std::memcpy(&to, &algorithm, sizeof(algorithm));
}
/// Returns none if it was not initialised.
std::optional<StandInAlgorithm> read(const cublasLtMatmulAlgo_t* from) {
  StandInAlgorithm algorithm;
  if (from) std::memcpy(static_cast<void*>(&algorithm), from, sizeof(algorithm));
  if (from && algorithm.mark == StandInAlgorithm::kMark) return algorithm;
  refuse("an algorithm that was not initialised");
  return {};
}

/// Calls `work` with the setting that an attribute means.
template <class Work>
cublasStatus_t visit(StandInSettings& settings, cublasLtMatmulAlgoConfigAttributes_t attribute,
                     Work work) {
  switch (attribute) {
    case CUBLASLT_ALGO_CONFIG_ID: return work(settings.id);
    case CUBLASLT_ALGO_CONFIG_TILE_ID: return work(settings.tile);
    case CUBLASLT_ALGO_CONFIG_SPLITK_NUM: return work(settings.parts);
    case CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME: return work(settings.reduction);
    case CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING: return work(settings.swizzle);
    case CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION: return work(settings.custom);
    case CUBLASLT_ALGO_CONFIG_STAGES_ID: return work(settings.stages);
    case CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID: return work(settings.inner);
    case CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID: return work(settings.cluster);
  }
  return refuse("an attribute that is not");
}

template <class T>
cublasStatus_t give(const T& from, void* value, size_t bytes, size_t* written) {
  if (!value || !written || bytes != sizeof(T)) return refuse("an attribute of another size");
  std::memcpy(value, &from, sizeof(T));
  *written = sizeof(T);
  return CUBLAS_STATUS_SUCCESS;
}

/// Returns how it computes, as CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS says it.
uint64_t ability_of(const StandInAlgorithm& algorithm) {
  const uint64_t sums = CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F;
  if (algorithm.types.a == CUDA_R_16BF) return sums | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF;
  if (algorithm.types.a == CUDA_R_16F)
    return CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F |
           (told.is_careless ? CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F : sums);
  if (algorithm.types.compute == CUBLAS_COMPUTE_32F_FAST_TF32 || told.is_careless)
    return sums | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32;
  return sums | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F;
}

cublasStatus_t check_algorithm(const std::optional<StandInProduct>& p,
                               const std::optional<StandInAlgorithm>& algorithm) {
  if (!p || !algorithm) return CUBLAS_STATUS_INVALID_VALUE;
  if (algorithm->types != types_of(*p)) return refuse("an algorithm of other types");
  for (const StandInKnown& known : stand_in_algorithms())
    if (known.settings == algorithm->settings && suits(known, *p, {})) return CUBLAS_STATUS_SUCCESS;
  return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "an algorithm that cannot do it");
}

/// Returns whether an operand lies where operands may.
bool is_there(const void* data, size_t bytes, uintptr_t alignment) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  if (!data || begin % alignment != 0) return false;
  for (const std::span<const std::byte> one : told.memory) {
    const auto first = reinterpret_cast<uintptr_t>(one.data());
    if (begin >= first && begin + bytes <= first + one.size()) return true;
  }
  return false;
}

/// Returns what is wrong with the addresses; empty: nothing.
const char* conflict_of_memory(const StandInProduct& p, const void* a, const void* b,
                               const void* d) {
  if (!is_there(a, p.a.bytes(), 16)) return "A is not in memory, or not aligned";
  if (!is_there(b, p.b.bytes(), 16)) return "B is not in memory, or not aligned";
  if (!is_there(d, p.d.bytes(), 16)) return "D is not in memory, or not aligned";
  if (p.operation.adds_bias() && !is_there(p.operation.bias, p.rows * p.d.element_bytes(), 16))
    return "the bias is not in memory, or not aligned";
  return "";
}

}  // namespace
}  // namespace tutti::device

using namespace tutti::device;

CublasLtStandIn* tutti_cublaslt_stand_in() { return &told; }

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (!told.has_device) return refuse(CUBLAS_STATUS_NOT_INITIALIZED, "no device");
  return handles.add(handle, {});
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return handles.remove(handle); }

const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "another status";
  }
}
size_t cublasLtGetVersion() { return told.version; }

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t stride) {
  if (type != CUDA_R_32F && type != CUDA_R_16BF && type != CUDA_R_16F)
    return refuse("a type of elements that Tutti has not");
  if (rows == 0 || columns == 0) return refuse("an empty matrix");
  return layouts.add(layout, {.type = type, .rows = rows, .columns = columns, .stride = stride});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return layouts.remove(layout);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation,
                                        cublasComputeType_t compute, cudaDataType_t scale) {
  if (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32)
    return refuse("a type of sums that Tutti has not");
  if (scale != CUDA_R_32F) return refuse("alpha and beta of another type than the sums");
  return operations.add(operation, {.compute = compute});
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  return operations.remove(operation);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t of,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  StandInOperation* const found = operations.find(of);
  if (!found) return refuse("a descriptor that is not");
  StandInOperation changed = *found;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_POINTER_MODE: status = take(changed.pointers, value, bytes); break;
    case CUBLASLT_MATMUL_DESC_TRANSA: status = take(changed.a_is, value, bytes); break;
    case CUBLASLT_MATMUL_DESC_TRANSB: status = take(changed.b_is, value, bytes); break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE: status = take(changed.epilogue, value, bytes); break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: status = take(changed.bias, value, bytes); break;
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: status = take(changed.bias_type, value, bytes); break;
    default: return refuse("an attribute that Tutti does not set");
  }
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  for (const int32_t one : {changed.a_is, changed.b_is})
    if (one != CUBLAS_OP_N && one != CUBLAS_OP_T) return refuse("neither transposed nor as it is");
  if (changed.pointers != CUBLASLT_POINTER_MODE_HOST) return refuse("alpha is not on the host");
  if (changed.epilogue != CUBLASLT_EPILOGUE_DEFAULT && !changed.adds_bias())
    return refuse("an epilogue that Tutti has not");
  *found = changed;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return preferences.add(preference, {});
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return preferences.remove(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t of,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  StandInPreference* const found = preferences.find(of);
  if (!found) return refuse("a descriptor that is not");
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return take(found->workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return take(found->reductions, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return take(found->a, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return take(found->b, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return take(found->c, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return take(found->d, value, bytes);
    default: return refuse("an attribute that Tutti does not set");
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
                                              cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* count) {
  const std::optional<StandInProduct> p = product_of(operation, a, b, c, d);
  const StandInPreference* const wanted = preferences.find(preference);
  if (!p) return CUBLAS_STATUS_INVALID_VALUE;
  if (!handles.find(handle) || !wanted || most <= 0 || !results || !count)
    return refuse("nothing to ask by, or nowhere to answer");
  if (fails()) return refuse(CUBLAS_STATUS_ALLOC_FAILED, "asked to");
  told.offered.clear();
  *count = 0;
  if (!told.has_algorithms) return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "asked to offer none");
  for (const StandInKnown& known : stand_in_algorithms()) {
    if (*count == most) break;
    if (!suits(known, *p, *wanted)) continue;
    if (!told.is_careless && !is_allowed(known, *p, *wanted)) continue;
    cublasLtMatmulHeuristicResult_t& result = results[(*count)++];
    result = {};
    write(result.algo, {.settings = known.settings, .types = types_of(*p)});
    result.workspaceSize = workspace_of(known.settings, *p);
    result.state = CUBLAS_STATUS_SUCCESS;
    told.offered.push_back(result.algo);
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t handle, cublasComputeType_t compute,
                                      cudaDataType_t scale, cudaDataType_t a, cudaDataType_t b,
                                      cudaDataType_t c, cudaDataType_t d, int id,
                                      cublasLtMatmulAlgo_t* algorithm) {
  if (!handles.find(handle) || !algorithm || scale != CUDA_R_32F)
    return refuse("nothing to ask by, or nowhere to answer");
  if (fails()) return refuse(CUBLAS_STATUS_ALLOC_FAILED, "asked to");
  for (const StandInKnown& known : stand_in_algorithms())
    if (known.settings.id == id) {
      write(*algorithm, {.settings = {.id = id}, .types = {compute, a, b, c, d}});
      return CUBLAS_STATUS_SUCCESS;
    }
  return refuse("an algorithm that is not");
}

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t* of,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  std::optional<StandInAlgorithm> algorithm = read(of);
  if (!algorithm) return CUBLAS_STATUS_INVALID_VALUE;
  if (attribute == CUBLASLT_ALGO_CONFIG_ID) return refuse("an attribute that nobody sets");
  const cublasStatus_t status =
      visit(algorithm->settings, attribute, [&](auto& one) { return take(one, value, bytes); });
  write(*of, *algorithm);
  return status;
}
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* of,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void* value, size_t bytes, size_t* written) {
  std::optional<StandInAlgorithm> algorithm = read(of);
  if (!algorithm) return CUBLAS_STATUS_INVALID_VALUE;
  return visit(algorithm->settings, attribute,
               [&](auto& one) { return give(one, value, bytes, written); });
}
cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t* of,
                                                 cublasLtMatmulAlgoCapAttributes_t attribute,
                                                 void* value, size_t bytes, size_t* written) {
  const std::optional<StandInAlgorithm> algorithm = read(of);
  if (!algorithm) return CUBLAS_STATUS_INVALID_VALUE;
  if (attribute != CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS)
    return refuse("an attribute that Tutti does not ask for");
  return give(ability_of(*algorithm), value, bytes, written);
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* which,
                                       cublasLtMatmulHeuristicResult_t* result) {
  if (!handles.find(handle) || !result) return refuse("nothing to ask by, or nowhere to answer");
  if (fails()) return refuse(CUBLAS_STATUS_ALLOC_FAILED, "asked to");
  const std::optional<StandInProduct> p = product_of(operation, a, b, c, d);
  const std::optional<StandInAlgorithm> algorithm = p ? read(which) : std::nullopt;
  const cublasStatus_t status = check_algorithm(p, algorithm);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  result->workspaceSize = workspace_of(algorithm->settings, *p);
  result->state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t of_a,
                              const void* b, cublasLtMatrixLayout_t of_b, const void* beta,
                              const void* c, cublasLtMatrixLayout_t of_c, void* d,
                              cublasLtMatrixLayout_t of_d, const cublasLtMatmulAlgo_t* which,
                              void* workspace, size_t bytes, cudaStream_t stream) {
  if (!handles.find(handle)) return refuse(CUBLAS_STATUS_NOT_INITIALIZED, "no handle");
  const std::optional<StandInProduct> p = product_of(operation, of_a, of_b, of_c, of_d);
  const std::optional<StandInAlgorithm> algorithm = p ? read(which) : std::nullopt;
  const cublasStatus_t status = check_algorithm(p, algorithm);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (fails()) return refuse(CUBLAS_STATUS_ALLOC_FAILED, "asked to");
  if (!alpha || *static_cast<const float*>(alpha) != 1) return refuse("an alpha that is not 1");
  if (!beta || *static_cast<const float*>(beta) != 0) return refuse("a beta that is not 0");
  if (c != d) return refuse("a C that is not D");
  if (const char* conflict = conflict_of_memory(*p, a, b, d); *conflict) return refuse(conflict);
  const size_t needed = workspace_of(algorithm->settings, *p);
  if (bytes < needed) return refuse("too small a workspace");
  if (needed > 0 && !is_there(workspace, bytes, 256))
    return refuse("the workspace is not in memory, or not aligned");
  if (stream != told.stream) return refuse("another stream");
  if (needed > 0) std::memset(workspace, 0xff, bytes);
  multiply(*p, a, b, d);
  told.used = *which;
  return CUBLAS_STATUS_SUCCESS;
}
