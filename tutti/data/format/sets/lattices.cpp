#include "tutti/data/format/sets/lattices.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <limits>
#include <numbers>

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/data/each_sample.h"
#include "tutti/data/format/sets/lattices_file.h"
#include "tutti/data/made_set.h"

namespace tutti::data {
namespace {

constexpr int kSide = kLatticeSide;
using Vector = std::array<double, 2>;

double between(Rng& rng, double low, double high) { return low + (high - low) * rng.uniform(); }

// A 2 x 2 matrix by rows.
struct Matrix {
  double xx, xy, yx, yy;
  Vector operator*(const Vector& v) const { return {xx * v[0] + xy * v[1], yx * v[0] + yy * v[1]}; }
};

struct PrimitiveCell {
  Vector a1, a2;
};

// Returns a primitive cell of the class, of any area. Always draws two numbers.
PrimitiveCell primitive_cell(Bravais lattice, Rng& rng) {
  const double u = rng.uniform(), v = rng.uniform();
  switch (lattice) {
    case Bravais::oblique: {
      const double b = 1.2 + 0.2 * u, angle = (75 + 5 * v) * std::numbers::pi / 180;
      return {{1, 0}, {b * std::cos(angle), b * std::sin(angle)}};
    }
    case Bravais::rectangular: return {{1, 0}, {0, 1.2 + 0.3 * u}};
    case Bravais::centred_rectangular: {
      const double b = 1.25 + 0.2 * u;
      return {{0.5, 0.5 * b}, {0.5, -0.5 * b}};
    }
    case Bravais::square: return {{1, 0}, {0, 1}};
    case Bravais::hexagonal: return {{1, 0}, {0.5, 0.5 * std::numbers::sqrt3}};
  }
  return {};
}

LatticeCell draw_cell(Bravais lattice, Rng& rng) {
  const PrimitiveCell cell = primitive_cell(lattice, rng);
  const double area = std::abs(cell.a1[0] * cell.a2[1] - cell.a1[1] * cell.a2[0]);
  const double scale = between(rng, 7, 9.5) / std::sqrt(area);
  const double angle = between(rng, 0, 2 * std::numbers::pi), mirror = rng.below(2) == 0 ? 1 : -1;
  const double c = scale * std::cos(angle), s = scale * std::sin(angle);
  const Matrix turn{c, -s * mirror, s, c * mirror};
  const double xx = between(rng, -0.015, 0.015), yy = between(rng, -0.015, 0.015),
               xy = between(rng, -0.015, 0.015);
  const Matrix strain{1 + xx, xy, xy, 1 + yy};
  const Vector a1 = strain * (turn * cell.a1), a2 = strain * (turn * cell.a2);
  return {lattice, {a1[0], a1[1]}, {a2[0], a2[1]}};
}

Bravais lattice_of(int64_t index) { return static_cast<Bravais>(index % kLatticeClasses); }

// Adds exp(-r^2 / (2 sigma^2)) around (x, y); separable, and cut off below about 1 % of the peak (3
// sigma).
void add_column(double x, double y, double sigma, float* image) {
  const double reach = 3 * sigma;
  const int x0 = std::max(0, static_cast<int>(std::ceil(x - reach))),
            x1 = std::min(kSide - 1, static_cast<int>(std::floor(x + reach)));
  const int y0 = std::max(0, static_cast<int>(std::ceil(y - reach))),
            y1 = std::min(kSide - 1, static_cast<int>(std::floor(y + reach)));
  const double k = -0.5 / (sigma * sigma);
  std::array<float, kSide> along_x;
  for (int i = x0; i <= x1; ++i)
    along_x[static_cast<size_t>(i)] = static_cast<float>(std::exp(k * (i - x) * (i - x)));
  for (int j = y0; j <= y1; ++j) {
    const auto along_y = static_cast<float>(std::exp(k * (j - y) * (j - y)));
    for (int i = x0; i <= x1; ++i)
      image[j * kSide + i] += along_y * along_x[static_cast<size_t>(i)];
  }
}

// Draws the projected columns with peak 1, without noise.
void draw_columns(const LatticeCell& cell, Rng& rng, float* image) {
  const double origin_u = rng.uniform(), origin_v = rng.uniform();
  const double displacement = between(rng, 0.15, 0.55), vacancies = between(rng, 0, 0.1),
               sigma = between(rng, 1.3, 1.9);
  const double margin = 3 * 1.9 + 3 * 0.55;  // columns further out do not reach the image
  const auto [a1, a2] =
      std::array<Vector, 2>{Vector{cell.a1[0], cell.a1[1]}, Vector{cell.a2[0], cell.a2[1]}};
  const double area = std::abs(a1[0] * a2[1] - a1[1] * a2[0]);
  const double radius = (0.5 * kSide + margin) * std::numbers::sqrt2;
  const double longest = std::max(std::hypot(a1[0], a1[1]), std::hypot(a2[0], a2[1]));
  const int reach = static_cast<int>(std::ceil(radius * longest / area)) +
                    1;  // rows of the lattice are area / longest apart
  for (int i = -reach; i <= reach; ++i)
    for (int j = -reach; j <= reach; ++j) {
      const double u = i + origin_u, v = j + origin_v;
      const double x = 0.5 * kSide + u * a1[0] + v * a2[0], y = 0.5 * kSide + u * a1[1] + v * a2[1];
      if (x < -margin || x > kSide + margin || y < -margin || y > kSide + margin) continue;
      const double dx = displacement * rng.normal(), dy = displacement * rng.normal();
      if (rng.uniform() >= vacancies) add_column(x + dx, y + dy, sigma, image);
    }
}

void count_electrons(const float* image, Rng& rng, uint8_t* pixels) {
  const double background = between(rng, 0.1, 0.4), dose = between(rng, 4, 20);
  const double gain = 160 / (dose * (1 + background));
  for (int i = 0; i < kSide * kSide; ++i) {
    const uint32_t electrons = rng.poisson(dose * (background + image[i]));
    pixels[i] = static_cast<uint8_t>(std::min(255.0, std::round(gain * electrons)));
  }
}

}  // namespace

const std::vector<std::string>& lattice_names() {
  static const std::vector<std::string> names = {"oblique", "rectangular", "centred rectangular",
                                                 "square", "hexagonal"};
  return names;
}

LatticeCell lattice_cell(uint64_t seed, int64_t index) {
  Rng rng(seed, Purpose::generate, static_cast<uint64_t>(index));
  return draw_cell(lattice_of(index), rng);
}

void generate_lattice(uint64_t seed, int64_t index, uint8_t* pixels, uint8_t* label) {
  Rng rng(seed, Purpose::generate, static_cast<uint64_t>(index));
  const LatticeCell cell = draw_cell(lattice_of(index), rng);
  std::array<float, kSide * kSide> image{};
  draw_columns(cell, rng, image.data());
  count_electrons(image.data(), rng, pixels);
  *label = static_cast<uint8_t>(cell.lattice);
}

void generate_lattices(const LatticeSpec& spec, int threads, uint8_t* records) {
  CHECK(threads > 0 && spec.first >= 0 && spec.count >= 0, "{} threads, images {} + {}", threads,
        spec.first, spec.count);
  const auto make = [&](int64_t i) {
    uint8_t* record = records + i * kLatticeRecordBytes;
    generate_lattice(spec.seed, spec.first + i, record + 1, record);
  };
  for_each_sample(spec.count, threads, make, false);
}

namespace {

/// Returns untouched memory for all records.
std::vector<uint8_t> room_for(const LatticeSpec& spec) {
  std::vector<uint8_t> records;
  try {
    if (spec.count > std::numeric_limits<int64_t>::max() / kLatticeRecordBytes)
      throw std::bad_alloc();
    records.reserve(static_cast<size_t>(spec.count * kLatticeRecordBytes));
  } catch (const std::exception&) {
    throw ConfigError(fmt::format(
        "{} generated lattices of 4 KiB each do not fit into memory: lower "
        "data.generate_train and data.generate_test, or write files with 'tutti data generate'",
        spec.count));
  }
  return records;
}

}  // namespace

std::unique_ptr<StoredImages> lattices_in_memory(const LatticeSpec& spec, int threads,
                                                 const ClassLimit& limit) {
  std::vector<uint8_t> records = room_for(spec);
  records.resize(static_cast<size_t>(spec.count * kLatticeRecordBytes));
  generate_lattices(spec, threads, records.data());
  return lattices_from_records(std::move(records), limit);
}

std::unique_ptr<Dataset> lattices_when_read(const LatticeSpec& spec, const ClassLimit& limit,
                                            const FieldStatistics& statistics) {
  (void)room_for(spec);
  LatticeSpec few = spec;
  few.count = std::min<int64_t>(spec.count, kLatticeClasses);  // every label occurs
  const auto stored = lattices_in_memory(few, 1, limit);
  stored->set_statistics(statistics);
  return std::make_unique<MadeSet>(
      spec.count, stored->fields(), [spec](int64_t index, Sample& sample) {
        CHECK(index >= 0 && index < spec.count, "image {} of {}", index, spec.count);
        generate_lattice(spec.seed, spec.first + index, static_cast<uint8_t*>(sample.own(0)),
                         static_cast<uint8_t*>(sample.own(1)));
      });
}

void write_lattices(const std::filesystem::path& path, const LatticeSpec& spec, int threads) {
  constexpr int64_t kBlock = 4096;  // 16 MiB
  LatticesWriter writer(path, spec);
  std::vector<uint8_t> records;
  for (int64_t done = 0; done < spec.count; done += kBlock) {
    const LatticeSpec block{spec.seed, spec.first + done, std::min(kBlock, spec.count - done)};
    records.resize(static_cast<size_t>(block.count * kLatticeRecordBytes));
    generate_lattices(block, threads, records.data());
    writer.append(records);
  }
  writer.finish();
}

}  // namespace tutti::data
