#pragma once
// Describes how a gradient is compressed on its way between ranks, as plain data, and as the
// text of configurations and logs.
//
//   text           rounds  data that travel (S: bytes of the dense f32 vector, P: ranks)
//   none                   the dense sum: not a compression, not planned by plan_compressed()
//   bf16, fp16     2       S (P-1)/P: 16-bit slices to their owners, their sums to all
//   int8           2       S/3.9 2 (P-1)/P, the same way; onebit: S/30 2 (P-1)/P
//   topk:RATIO     1       2 RATIO S (P-1): index and value of the largest RATIO, to all
//   hitopk:RATIO   3       dense inside a node, 2 RATIO S/L (M-1) between M nodes of L ranks
//                          (HiTopKComm)
//   powersgd:RANK  2       allreduces: 2 RANK / side of the square matrix of S, each way
//
// Every method feeds its losses back (codec/error_feedback.h).

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti::comm {

enum class CompressionMethod : uint8_t { none, bf16, fp16, int8, onebit, topk, hitopk, powersgd };
inline constexpr int kCompressionMethods = 8;

struct CompressionSpec {
  CompressionMethod method = CompressionMethod::none;
  double ratio =
      0.01;      ///< topk, hitopk: share of the elements that a rank sends, above 0 and at most 1
  int rank = 4;  ///< powersgd: columns of P and Q, at least 1

  bool compresses() const { return method != CompressionMethod::none; }
  bool sparse() const {
    return method == CompressionMethod::topk || method == CompressionMethod::hitopk;
  }
  bool operator==(const CompressionSpec&) const = default;
};

std::string_view name_of(CompressionMethod method);
/// Formats "int8", "topk:0.01", "powersgd:4", which parse_compression() accepts.
std::string to_string(const CompressionSpec& spec);
/// Throws ConfigError that lists the methods, or explains the number that the method needs.
CompressionSpec parse_compression(std::string_view text);

}  // namespace tutti::comm
