// generate_climate DIR ROWS COLUMNS COUNT [FIRST] [SEED]: writes samples of
// tutti/generate/climate as DIR/x.npy, float32 [COUNT][ROWS][COLUMNS][16], and DIR/y.npy,
// uint8 [COUNT][ROWS][COLUMNS]. Prints the seconds a sample took.
#include <chrono>
#include <vector>

#include "tutti/data/format/array/npy_arrays.h"
#include "tutti/generate/climate/climate.h"

using namespace tutti::data;

int main(int argc, char** argv) {
  if (argc < 5) {
    fmt::print(stderr, "generate_climate DIR ROWS COLUMNS COUNT [FIRST] [SEED]\n");
    return 2;
  }
  const std::filesystem::path directory = argv[1];
  const int64_t count = std::stoll(argv[4]), first = argc > 5 ? std::stoll(argv[5]) : 0;
  const tutti::generate::ClimateSpec spec{{std::stoi(argv[2]), std::stoi(argv[3])},
                                          argc > 6 ? std::stoull(argv[6]) : 1};
  std::vector<float> x(
      static_cast<size_t>(count * spec.grid.pixels() * tutti::generate::kClimateChannels));
  std::vector<uint8_t> y(static_cast<size_t>(count * spec.grid.pixels()));
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < count; ++i)
    tutti::generate::generate_climate(
        spec, first + i, x.data() + i * spec.grid.pixels() * tutti::generate::kClimateChannels,
        y.data() + i * spec.grid.pixels());
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::filesystem::create_directories(directory);
  const int64_t rows = spec.grid.rows, columns = spec.grid.columns;
  tutti::data::write_npy_array(
      directory / "x.npy",
      {"x", tutti::data::ElementType::f32, {count, rows, columns, 16}, x.data()});
  tutti::data::write_npy_array(
      directory / "y.npy", {"y", tutti::data::ElementType::u8, {count, rows, columns}, y.data()});
  fmt::print("{} samples of {} x {} x 16: {:.3f} s each\n", count, spec.grid.rows,
             spec.grid.columns, seconds / static_cast<double>(count));
  return 0;
}
