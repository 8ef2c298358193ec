#include "tutti/device/cuda/libraries/cublaslt_stand_in_product.h"

#include <cmath>

namespace tutti::device {
namespace {

const char* conflict_of_types(const StandInProduct& p) {
  const cudaDataType_t in = p.a.type, out = p.d.type;
  if (p.b.type != in) return "factors of two types";
  if (p.c.type != out) return "C and D of two types";
  if (out != in && out != CUDA_R_32F) return "a result of neither the factors' type nor f32";
  if (p.operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && in != CUDA_R_32F)
    return "tf32 of factors that are not f32";
  const int32_t bias_type = p.operation.bias_type == -1 ? int32_t{out} : p.operation.bias_type;
  if (p.operation.adds_bias() && bias_type != out) return "a bias of another type than the result";
  if (p.operation.adds_bias() && !p.operation.bias) return "no bias";
  return "";
}

const char* conflict_of_extents(const StandInProduct& p) {
  for (const StandInLayout& one : {p.a, p.b, p.c, p.d})
    if (one.stride < static_cast<int64_t>(one.rows)) return "columns that overlap";
  if ((p.operation.transposes_b() ? p.b.columns : p.b.rows) != p.sums)
    return "factors that do not fit";
  if (p.d.rows != p.rows || p.d.columns != p.columns) return "a result that does not fit";
  if (p.c.rows != p.rows || p.c.columns != p.columns) return "a C that does not fit";
  return "";
}

double element(const void* data, cudaDataType_t type, size_t at) {
  if (type == CUDA_R_32F) return static_cast<const float*>(data)[at];
  if (type == CUDA_R_16BF) return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[at]);
  return __half2float(static_cast<const __half*>(data)[at]);
}

void put_element(void* data, cudaDataType_t type, size_t at, double value) {
  const auto single = static_cast<float>(value);
  if (type == CUDA_R_32F)
    static_cast<float*>(data)[at] = single;
  else if (type == CUDA_R_16BF)
    static_cast<__nv_bfloat16*>(data)[at] = __float2bfloat16_rn(single);
  else
    static_cast<__half*>(data)[at] = __float2half_rn(single);
}

/// Rounds to the 11 bits of tf32, of which 10 are in memory.
double to_tf32(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, 11)), exponent - 11);
}

}  // namespace

const char* complete(StandInProduct& p) {
  p.rows = p.operation.transposes_a() ? p.a.columns : p.a.rows;
  p.sums = p.operation.transposes_a() ? p.a.rows : p.a.columns;
  p.columns = p.operation.transposes_b() ? p.b.rows : p.b.columns;
  const char* const conflict = conflict_of_types(p);
  return *conflict ? conflict : conflict_of_extents(p);
}

void multiply(const StandInProduct& p, const void* a, const void* b, void* d) {
  const bool is_tf32 = p.operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const auto factor = [&](const void* data, const StandInLayout& of, bool transposes, uint64_t row,
                          uint64_t column) {
    const size_t at = transposes ? of.at(column, row) : of.at(row, column);
    const double value = element(data, of.type, at);
    return is_tf32 ? to_tf32(value) : value;
  };
  for (uint64_t column = 0; column < p.columns; ++column) {
    for (uint64_t row = 0; row < p.rows; ++row) {
      double sum = 0;
      for (uint64_t i = 0; i < p.sums; ++i)
        sum += factor(a, p.a, p.operation.transposes_a(), row, i) *
               factor(b, p.b, p.operation.transposes_b(), i, column);
      if (p.operation.adds_bias()) sum += element(p.operation.bias, p.d.type, row);
      put_element(d, p.d.type, p.d.at(row, column), sum);
    }
  }
}

}  // namespace tutti::device
