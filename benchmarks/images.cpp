// Measures how many JPEGs a second our readers decode, against libjpeg-turbo's own plain loop,
// which reads a file from memory with jpeg_read_scanlines as a whole RGB image, and nothing else.
//
//   tutti_bench_images FOLDER [THREADS [CROP [ROUNDS]]]
//
// FOLDER: a data set as `tutti data inspect` knows it. Both sides decode the same images on the
// same number of threads (0: all cores), alternately; the results are medians over the rounds. Our
// side does all that training needs: a random part, decoded at the scale that covers it, resampled
// to CROP x CROP; the third line is for evaluation's whole images.

#include <cstdio>  // jpeglib.h needs it first

#include <jpeglib.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "tutti/data/images/image_set.h"
#include "tutti/data/transform/image_field.h"

namespace {

using namespace tutti::data;
using Coded = std::vector<uint8_t>;

void decode_plainly(const Coded& coded, std::vector<uint8_t>& rgb) {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, coded.data(), static_cast<unsigned long>(coded.size()));
  jpeg_read_header(&info, TRUE);
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  const size_t stride = size_t{info.output_width} * 3;
  rgb.resize(stride * info.output_height);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = rgb.data() + info.output_scanline * stride;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
}

/// Returns images a second, summed over all threads.
double rate(size_t images, int threads, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  const auto began = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> workers;
    for (int t = 0; t < threads; ++t)
      workers.emplace_back([&] {
        for (size_t i = next++; i < images; i = next++) work(i);
      });
  }
  return static_cast<double>(images) /
         std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "tutti_bench_images FOLDER [THREADS [CROP [ROUNDS]]]\n");
    return 2;
  }
  const auto number = [&](int at, int otherwise) {
    return argc > at && std::atoi(argv[at]) > 0 ? std::atoi(argv[at]) : otherwise;
  };
  const int threads = number(2, static_cast<int>(std::thread::hardware_concurrency()));
  const int crop = number(3, 224), rounds = number(4, 5);
  constexpr size_t kFewest = 400;
  const auto set = tutti::data::open_image_set(argv[1], "train", {}, {});
  std::vector<Coded> coded;
  tutti::data::Sample sample(set->fields());
  double pixels = 0;
  for (int64_t i = 0; i < std::min<int64_t>(set->size(), 2000); ++i) {
    set->read(i, sample);
    if (!tutti::data::is_jpeg(sample.coded_at(0))) continue;
    coded.emplace_back(sample.coded_at(0).begin(), sample.coded_at(0).end());
    const tutti::data::ImageSize size = tutti::data::image_size(coded.back());
    pixels += static_cast<double>(size.height * size.width);
  }
  if (coded.empty()) {
    fmt::print(stderr, "{} has no JPEGs\n", argv[1]);
    return 1;
  }
  const size_t files = coded.size(), images = (kFewest + files - 1) / files * files;
  const tutti::data::ImageField field(
      set->fields()[0],
      tutti::data::parse_steps(fmt::format("image: resized-crop {}", crop)).derivation);
  const auto plain = [&](size_t i) {
    thread_local std::vector<uint8_t> rgb;
    decode_plainly(coded[i % files], rgb);
  };
  const auto training = [&](size_t i) {
    const tutti::data::Chance chance(1, static_cast<int64_t>(i / files),
                                     static_cast<int64_t>(i % files));
    field.make(coded[i % files], "image", &chance);
  };
  const auto evaluation = [&](size_t i) { field.make(coded[i % files], "image", nullptr); };
  std::vector<double> plain_rates, training_rates, evaluation_rates;
  for (int round = 0; round < rounds; ++round) {
    plain_rates.push_back(rate(images, threads, plain));
    training_rates.push_back(rate(images, threads, training));
    evaluation_rates.push_back(rate(images, threads, evaluation));
  }
  const double base = median(plain_rates);
  fmt::print("{} JPEGs of {:.2f} megapixels, {} threads, {} rounds in turns, medians\n", files,
             pixels / static_cast<double>(files) / 1e6, threads, rounds);
  fmt::print("libjpeg-turbo, whole image as RGB   {:8.0f} images/s\n", base);
  fmt::print("training, resized-crop {:<4}         {:8.0f} images/s  {:.2f}\n", crop,
             median(training_rates), median(training_rates) / base);
  fmt::print("evaluation, resized-crop {:<4}       {:8.0f} images/s  {:.2f}\n", crop,
             median(evaluation_rates), median(evaluation_rates) / base);
  return 0;
}
