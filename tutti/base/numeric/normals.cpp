// Box-Muller in loops that compilers vectorise. Logarithm and cosine are series that are correct to
// 2^-48; libm's own are correct to 2^-52, and differ between versions in the last bit. Both round
// to the same float unless the product lies within the error of a number half way between two
// floats. That happens once in 260,000, and Rng::normal itself draws such a number.

#include "tutti/base/numeric/normals.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace tutti {
namespace {

constexpr size_t kBlocks = 256;  // blocks of four draws, two numbers: few enough for L1

using Words = std::array<uint32_t, kBlocks>;
using Reals = std::array<double, kBlocks>;

/// Returns sqrt(-2 log((x + 1) / 2^32)). log m = 2 artanh((m - 1) / (m + 1)) for m from sqrt(1/2)
/// to sqrt(2), plus a multiple of log 2.
double radius(uint32_t x) {
  constexpr uint64_t kOne = 0x3FF0000000000000, kRoot = 0x3FE6A09E667F3BCD;  // 1, sqrt(1/2)
  constexpr uint64_t kMagic = 0x4330000000000000;                            // 2^52
  const uint64_t bits = std::bit_cast<uint64_t>(static_cast<double>(x) + 1.0);
  const uint64_t biased = (bits - kRoot + kOne) >> 52;
  const double power = std::bit_cast<double>(biased | kMagic) - (0x1p52 + 1023 + 32);
  const double m = std::bit_cast<double>(bits - (biased << 52) + kOne);
  const double s = (m - 1) / (m + 1), z = s * s;
  double p = 1.0 / 19;
  p = p * z + 1.0 / 17;
  p = p * z + 1.0 / 15;
  p = p * z + 1.0 / 13;
  p = p * z + 1.0 / 11;
  p = p * z + 1.0 / 9;
  p = p * z + 1.0 / 7;
  p = p * z + 1.0 / 5;
  p = p * z + 1.0 / 3;
  const double log = power * 0.6931471805599453 + (2 * s + 2 * s * z * p);
  return std::sqrt(-2 * log);
}

/// Computes 6.283185307179586 y / 2^32, rounded as Rng::normal rounds it. The angles are stored
/// first: otherwise a compiler may fuse the product with the following difference, and then round
/// once.
void angles_of(const Words& y, Reals& angles) {
  for (size_t i = 0; i < kBlocks; ++i)
    angles[i] = 6.283185307179586 * (static_cast<double>(y[i]) * 0x1p-32);
}

/// Returns cos(angle) by Taylor's series around the nearest multiple of pi / 2, which follows from
/// `y` and is subtracted in two parts. The first has 33 bits, so that nothing is rounded.
double cosine(double angle, uint32_t y) {
  constexpr double kHead = 0x1.921fb544p0, kTail = 0x1.0b4611a626331p-34;
  const uint32_t quarter = ((y >> 29) + 1) >> 1;  // 0 to 4
  const auto n = static_cast<double>(static_cast<int32_t>(quarter));
  const double t = (angle - n * kHead) - n * kTail, z = t * t;
  double c = 1.0 / 20922789888000;  // 16!
  c = c * z - 1.0 / 87178291200;
  c = c * z + 1.0 / 479001600;
  c = c * z - 1.0 / 3628800;
  c = c * z + 1.0 / 40320;
  c = c * z - 1.0 / 720;
  c = c * z + 1.0 / 24;
  c = c * z - 1.0 / 2;
  c = c * z + 1;
  double s = -1.0 / 1307674368000;  // 15!
  s = s * z + 1.0 / 6227020800;
  s = s * z - 1.0 / 39916800;
  s = s * z + 1.0 / 362880;
  s = s * z - 1.0 / 5040;
  s = s * z + 1.0 / 120;
  s = s * z - 1.0 / 6;
  s = s * z * t + t;
  const double value = (quarter & 1) != 0 ? s : c;
  return ((quarter + 1) & 2) != 0 ? -value : value;
}

/// Whether a number that differs by 2^-42 may round to another float. Results below 2^-50 are zeros
/// and angles of a quarter turn to the last bit; there the reduction is not precise enough.
bool is_between_floats(double x) {
  constexpr uint64_t kHalf = uint64_t{1} << 28, kMargin = 1024;  // in units of its last bit
  return (std::bit_cast<uint64_t>(x) + kHalf + kMargin) % (2 * kHalf) < 2 * kMargin ||
         std::abs(x) < 0x1p-50;
}

/// Computes one number of each block. Returns true if some are between floats.
bool normals_of(const Words& x, const Words& y, Reals& products) {
  Reals angles;
  angles_of(y, angles);
  uint64_t doubtful = 0;
  for (size_t i = 0; i < kBlocks; ++i) {
    products[i] = radius(x[i]) * cosine(angles[i], y[i]);
    doubtful += is_between_floats(products[i]) ? 1 : 0;
  }
  return doubtful > 0;
}

float drawn_alone(const NormalStream& stream, uint64_t number) {
  Rng rng(stream.seed, stream.purpose, stream.stream);
  rng.skip(2 * number);
  return rng.normal();
}

}  // namespace

void fill_normals(const NormalStream& stream, uint64_t first, std::span<float> values) {
  std::array<Words, 4> words;
  std::array<Reals, 2> products;
  std::array<float, 2 * kBlocks> numbers;
  for (size_t done = 0; done < values.size();) {
    const uint64_t block = (first + done) / 2;
    philox_blocks(philox_key(stream.seed, stream.purpose), stream.stream, block, words);
    const bool doubtful = static_cast<int>(normals_of(words[0], words[1], products[0])) +
                              static_cast<int>(normals_of(words[2], words[3], products[1])) >
                          0;
    for (size_t i = 0; i < kBlocks; ++i) {
      numbers[2 * i] = static_cast<float>(products[0][i]);
      numbers[2 * i + 1] = static_cast<float>(products[1][i]);
    }
    for (size_t i = 0; doubtful && i < numbers.size(); ++i)
      if (is_between_floats(products[i % 2][i / 2]))
        numbers[i] = drawn_alone(stream, 2 * block + i);
    const size_t begin = (first + done) % 2;
    const size_t count = std::min(numbers.size() - begin, values.size() - done);
    std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(begin), count,
                values.begin() + static_cast<std::ptrdiff_t>(done));
    done += count;
  }
}

}  // namespace tutti
