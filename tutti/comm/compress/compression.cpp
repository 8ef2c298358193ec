#include "tutti/comm/compress/compression.h"

#include <fmt/format.h>

#include <array>

#include "tutti/base/error.h"
#include "tutti/base/number.h"

namespace tutti::comm {
namespace {

constexpr std::array<std::string_view, kCompressionMethods> kMethodNames = {
    "none", "bf16", "fp16", "int8", "onebit", "topk", "hitopk", "powersgd"};
constexpr std::string_view kForms =
    "none, bf16, fp16, int8, onebit, topk:RATIO, hitopk:RATIO, powersgd:RANK";

}  // namespace

std::string_view name_of(CompressionMethod method) {
  return kMethodNames[static_cast<size_t>(method)];
}

std::string to_string(const CompressionSpec& spec) {
  if (spec.sparse()) return fmt::format("{}:{}", name_of(spec.method), spec.ratio);
  if (spec.method == CompressionMethod::powersgd)
    return fmt::format("{}:{}", name_of(spec.method), spec.rank);
  return std::string(name_of(spec.method));
}

CompressionSpec parse_compression(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  CompressionSpec spec;
  size_t method = 0;
  while (method < kMethodNames.size() && kMethodNames[method] != name) ++method;
  if (method == kMethodNames.size())
    throw ConfigError(fmt::format("unknown compression '{}'; one of {}", text, kForms));
  spec.method = static_cast<CompressionMethod>(method);
  const bool has_number = colon != std::string_view::npos;
  if (!has_number && !spec.sparse() && spec.method != CompressionMethod::powersgd) return spec;
  const std::string_view number = has_number ? text.substr(colon + 1) : std::string_view();
  if (spec.sparse()) {
    if (!read_number(number, spec.ratio) || !(spec.ratio > 0 && spec.ratio <= 1))
      throw ConfigError(
          fmt::format("compression '{}': the ratio is the share of elements that is sent, above 0 "
                      "and at most 1, as in {}:0.01",
                      text, name));
  } else if (spec.method == CompressionMethod::powersgd) {
    if (!read_number(number, spec.rank) || spec.rank < 1)
      throw ConfigError(fmt::format(
          "compression '{}': the rank is an integer of at least 1, as in powersgd:4", text));
  } else {
    throw ConfigError(
        fmt::format("compression '{}': {} takes no number; one of {}", text, name, kForms));
  }
  return spec;
}

}  // namespace tutti::comm
