#include "tutti/comm/compress/codec/codec.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/base/number.h"
#include "tutti/base/shared_work.h"
#include "tutti/comm/compress/codec/block_codec.h"
#include "tutti/comm/compress/codec/topk.h"

namespace tutti::comm {
namespace {

// Floats: enough work for another thread to take part. A multiple of every granule.
constexpr size_t kContributionPiece = 64 << 10;
constexpr std::string_view kTopk = "topk:";

double parse_ratio(std::string_view spec) {
  const std::string_view text = spec.substr(kTopk.size());
  double ratio = 0;
  if (!read_number(text, ratio) || !(ratio > 0 && ratio <= 1))
    throw ConfigError(
        fmt::format("codec '{}': the ratio is the share of elements that is sent, above 0 and at "
                    "most 1, as in topk:0.01",
                    spec));
  return ratio;
}

}  // namespace

void Codec::encode(std::span<const float> values, std::span<std::byte> out, uint64_t step,
                   SharedWork* work) const {
  CHECK(out.size() == encoded_bytes(values.size()), "{}: {} bytes for {} values", name(),
        out.size(), values.size());
  if (!values.empty()) encode_values(values, out, step, work);
}

void Codec::decode(std::span<const std::byte> in, std::span<float> values) const {
  CHECK(in.size() == encoded_bytes(values.size()), "{}: {} bytes for {} values", name(), in.size(),
        values.size());
  if (!values.empty()) decode_values(in, values);
}

void Codec::add_decoded(std::span<const std::byte> in, std::span<float> sum, float weight) const {
  CHECK(in.size() == encoded_bytes(sum.size()), "{}: {} bytes for {} values", name(), in.size(),
        sum.size());
  if (!sum.empty()) add_values(in, sum, weight);
}

std::unique_ptr<Codec> make_codec(std::string_view spec) {
  if (spec == "bf16") return make_bf16();
  if (spec == "fp16") return make_fp16();
  if (spec == "int8") return make_int8();
  if (spec == "onebit") return make_onebit();
  if (spec.starts_with(kTopk)) return make_topk(parse_ratio(spec));
  throw ConfigError(fmt::format(
      "unknown codec '{}'; one of bf16, fp16, int8, onebit, topk:RATIO with 0 < RATIO <= 1", spec));
}

void sum_contributions(const Codec& codec, std::span<const std::byte> encodings,
                       std::span<float> sum, SharedWork* work) {
  const size_t bytes = codec.encoded_bytes(sum.size());
  if (bytes == 0) return;
  CHECK(!encodings.empty() && encodings.size() % bytes == 0,
        "{}: {} bytes are no contributions of {}", codec.name(), encodings.size(), bytes);
  const size_t granule = codec.granule();
  // An encoding that exists only as a whole has few entries: one thread adds them.
  const Pieces pieces(sum.size(), std::max<size_t>(granule, 1),
                      granule == 0 ? sum.size() : kContributionPiece);
  SharedWork::run(work, pieces.count(), [&](size_t i) {
    const std::span<float> piece = sum.subspan(pieces.begin(i), pieces.length(i));
    const size_t begin = codec.encoded_bytes(pieces.begin(i));
    const size_t length = codec.encoded_bytes(piece.size());
    codec.decode(encodings.subspan(begin, length), piece);
    for (size_t at = bytes; at < encodings.size(); at += bytes)
      codec.add_decoded(encodings.subspan(at + begin, length), piece);
  });
}

}  // namespace tutti::comm
