#include "tutti/comm/compress/report.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "tutti/base/error.h"

namespace tutti::comm {

CompressionReport& CompressionReport::operator+=(const CompressionReport& other) {
  runs += other.runs;
  bytes += other.bytes;
  dense_bytes += other.dense_bytes;
  codec_seconds += other.codec_seconds;
  caller_seconds += other.caller_seconds;
  exchange_seconds += other.exchange_seconds;
  loss += other.loss;
  not_finite += other.not_finite;
  return *this;
}

CompressionReport& CompressionReport::operator-=(const CompressionReport& earlier) {
  runs -= earlier.runs;
  bytes -= earlier.bytes;
  dense_bytes -= earlier.dense_bytes;
  codec_seconds -= earlier.codec_seconds;
  caller_seconds -= earlier.caller_seconds;
  exchange_seconds -= earlier.exchange_seconds;
  loss.lost -= earlier.loss.lost;
  loss.whole -= earlier.loss.whole;
  not_finite -= earlier.not_finite;
  return *this;
}

double CompressionReport::error() const { return std::sqrt(loss.ratio()); }

double CompressionReport::reduction() const {
  return bytes == 0 ? 1 : static_cast<double>(dense_bytes) / static_cast<double>(bytes);
}

double break_even_bandwidth(const CompressionReport& report) {
  if (report.dense_bytes <= report.bytes) return 0;
  if (report.codec_seconds <= 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(report.dense_bytes - report.bytes) / report.codec_seconds;
}

std::string to_string(const CompressionReport& report, uint64_t steps) {
  CHECK(steps > 0);
  const auto n = static_cast<double>(steps);
  return fmt::format(
      "moved {:.3g} of {:.3g} MB a step ({:.1f} times less), codec {:.3g} ms, exchange {:.3g} ms, "
      "relative error {:.3g}; breaks even at {:.3g} GB/s a rank",
      static_cast<double>(report.bytes) * 1e-6 / n,
      static_cast<double>(report.dense_bytes) * 1e-6 / n, report.reduction(),
      report.codec_seconds * 1e3 / n, report.exchange_seconds * 1e3 / n, report.error(),
      break_even_bandwidth(report) * 1e-9);
}

}  // namespace tutti::comm
