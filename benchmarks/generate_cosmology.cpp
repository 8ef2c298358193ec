// generate_cosmology DIR SIDE COUNT [FIRST] [SEED] [CELL] [THREADS]: writes the volumes FIRST ...
// FIRST + COUNT - 1 (tutti/generate/cosmology) as DIR/x.npy, int16
// [COUNT][SIDE][SIDE][SIDE][4], and DIR/y.npy, float32 [COUNT][4], the parameters as a network
// learns them. FIRST may be `test`: the first of a test set. Prints the seconds a volume took.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tutti/data/format/array/npy_arrays.h"
#include "tutti/generate/cosmology/cosmology.h"

using namespace tutti::data;

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr,
               "generate_cosmology DIR SIDE COUNT [FIRST | test] [SEED] [CELL] [THREADS]\n");
    return 2;
  }
  const auto argument = [&](int i, const char* otherwise) {
    return std::string(i < argc ? argv[i] : otherwise);
  };
  const std::filesystem::path directory = argv[1];
  const int64_t count = std::stoll(argv[3]);
  const std::string start = argument(4, "0");
  const int64_t first = start == "test" ? tutti::generate::kFirstTestVolume : std::stoll(start);
  const tutti::generate::VolumeSpec spec{std::stoi(argv[2]), std::stod(argument(6, "1")),
                                         std::stoull(argument(5, "1"))};
  const int threads = std::stoi(argument(7, "1"));

  const size_t volume =
      static_cast<size_t>(spec.side) * spec.side * spec.side * tutti::generate::kRedshifts.size();
  std::vector<int16_t> x(volume * static_cast<size_t>(count));
  std::vector<float> y;
  for (int64_t i = 0; i < count; ++i)
    for (const float unit :
         tutti::generate::unit_parameters(tutti::generate::cosmology_of(spec, first + i)))
      y.push_back(unit);
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<int64_t> next{0};
  {
    std::vector<std::jthread> workers;
    for (int t = 0; t < threads; ++t)
      workers.emplace_back([&] {
        for (int64_t i; (i = next.fetch_add(1)) < count;)
          tutti::generate::generate_volume(spec, first + i,
                                           x.data() + static_cast<size_t>(i) * volume);
      });
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::filesystem::create_directories(directory);
  const int64_t side = spec.side;
  tutti::data::write_npy_array(
      directory / "x.npy",
      {"x", tutti::data::ElementType::i16, {count, side, side, side, 4}, x.data()});
  tutti::data::write_npy_array(directory / "y.npy",
                               {"y", tutti::data::ElementType::f32, {count, 4}, y.data()});
  fmt::print("{} volumes of {}^3 x 4: {:.3f} s each on {} threads\n", count, spec.side,
             seconds / static_cast<double>(count), threads);
  return 0;
}
