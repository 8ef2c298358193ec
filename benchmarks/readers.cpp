// Measures how fast our readers read samples, against the least work of the formats' own libraries:
// for HDF5, H5Dread of the same arrays; for TFRecord, reading the records' bytes and comparing
// their checksums, as TensorFlow's reader does (by a loop here, since the library comes only with
// TensorFlow).
//
//   tutti_bench_readers cosmoflow|deepcam FOLDER [ROUNDS [THREADS]]
//
// FOLDER: a data set of that kind (`tutti data generate`). Our side does all that training needs:
// it opens files, compares checksums, examines every value and puts samples into a sample's memory.
// The sides alternate; the results are medians over the rounds, and files are in the system's cache
// after the first. Rates use processor time, so they are for one core. HDF5's library reads on one
// thread, so with THREADS above 1 only the others are compared.

#include <fcntl.h>
#include <fmt/format.h>
#include <hdf5.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tutti/base/numeric/crc32c.h"
#include "tutti/data/open/sample_files.h"

namespace {

using namespace tutti::data;
using Bytes = std::vector<uint8_t>;

void require(bool sound, const std::string& what) {
  if (!sound) throw std::runtime_error(what);
}

/// Reads the whole file.
size_t read_raw(const std::string& path, Bytes& bytes) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  require(file >= 0, path);
  bytes.resize(std::filesystem::file_size(path));
  size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t got = ::pread(file, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    require(got > 0, path);
    at += static_cast<size_t>(got);
  }
  ::close(file);
  return at;
}

size_t read_records(const std::string& path, Bytes& record) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  require(file >= 0, path);
  std::array<uint8_t, 12> head{};
  std::array<uint8_t, 4> tail{};
  size_t all = 0;
  while (::read(file, head.data(), head.size()) == static_cast<ssize_t>(head.size())) {
    uint64_t bytes = 0;
    uint32_t found = 0;
    std::memcpy(&bytes, head.data(), 8);
    std::memcpy(&found, head.data() + 8, 4);
    require(found == tutti::masked_crc(tutti::crc32c(head.data(), 8)), path);
    record.resize(bytes);
    for (size_t at = 0; at < bytes;) {
      const ssize_t got = ::read(file, record.data() + at, bytes - at);
      require(got > 0, path);
      at += static_cast<size_t>(got);
    }
    require(::read(file, tail.data(), tail.size()) == 4, path);
    std::memcpy(&found, tail.data(), 4);
    require(found == tutti::masked_crc(tutti::crc32c(record.data(), bytes)), path);
    all += bytes;
  }
  ::close(file);
  return all;
}

size_t read_hdf5(const std::string& path, const std::vector<std::string>& arrays, Bytes& bytes) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  require(file >= 0, path);
  size_t all = 0;
  for (const std::string& name : arrays) {
    const hid_t set = H5Dopen2(file, name.c_str(), H5P_DEFAULT);
    require(set >= 0, name);
    const hid_t space = H5Dget_space(set), type = H5Dget_type(set);
    const size_t size =
        static_cast<size_t>(H5Sget_simple_extent_npoints(space)) * H5Tget_size(type);
    bytes.resize(std::max(bytes.size(), size));
    require(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) >= 0, name);
    H5Tclose(type);
    H5Sclose(space);
    H5Dclose(set);
    all += size;
  }
  H5Fclose(file);
  return all;
}

/// Memory that a thread keeps between reads and rounds, because new memory costs more than reading.
struct Reader {
  Bytes plain, raw;
  tutti::data::Sample sample;
};

/// Returns MiB a second of processor time, which leaves out other work on the same cores.
double rate(size_t items, std::vector<Reader>& readers,
            const std::function<size_t(size_t, Reader&)>& read) {
  std::atomic<size_t> next{0}, bytes{0};
  std::atomic<int64_t> nanoseconds{0};
  {
    std::vector<std::jthread> workers;
    for (Reader& reader : readers)
      workers.emplace_back([&] {
        for (size_t i = next++; i < items; i = next++) bytes += read(i, reader);
        timespec used{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
        nanoseconds += int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
      });
  }
  return static_cast<double>(bytes) / (1 << 20) / (static_cast<double>(nanoseconds) * 1e-9);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "tutti_bench_readers cosmoflow|deepcam FOLDER [ROUNDS [THREADS]]\n");
    return 2;
  }
  const std::string name = argv[1], folder = argv[2];
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 7, threads = argc > 4 ? std::atoi(argv[4]) : 1;
  const auto files = tutti::data::sample_set_files(name, folder, "train");
  const auto set = tutti::data::open_sample_set(name, folder, "train");
  const bool hdf5 = name == "deepcam";
  size_t sample_bytes = 0;
  for (const tutti::data::Field& field : set->fields()) sample_bytes += field.bytes();
  std::vector<Reader> readers(static_cast<size_t>(threads));
  for (Reader& reader : readers) reader.sample = tutti::data::Sample(set->fields());
  const auto ours = [&](size_t i, Reader& reader) {
    set->read(static_cast<int64_t>(i), reader.sample);
    return sample_bytes;
  };
  const auto plain = [&](size_t i, Reader& reader) {
    return hdf5 ? read_hdf5(files[i].string(), {"climate/data", "climate/labels_0"}, reader.plain)
                : read_records(files[i].string(), reader.plain);
  };
  const auto raw = [&](size_t i, Reader& reader) {
    return read_raw(files[i].string(), reader.raw);
  };
  std::vector<double> of_ours, of_plain, of_raw;
  for (int round = 0; round <= rounds; ++round) {
    const bool counts = round > 0;  // the first one fills the system's cache
    const double r = rate(files.size(), readers, raw);
    const double p = hdf5 && threads > 1 ? 0 : rate(files.size(), readers, plain);
    const double o = rate(files.size(), readers, ours);
    if (!counts) continue;
    of_raw.push_back(r);
    of_plain.push_back(p);
    of_ours.push_back(o);
  }
  const double o = median(of_ours), p = median(of_plain), r = median(of_raw);
  fmt::print(
      "{}: {} files of {:.1f} MiB, {} threads, {} rounds in turns, medians, MiB a second of a "
      "core\n",
      name, files.size(), static_cast<double>(sample_bytes) / (1 << 20), threads, rounds);
  fmt::print("  samples {:.0f}, {} {:.0f} (ratio {:.2f}), bytes of the files alone {:.0f}\n", o,
             hdf5 ? "H5Dread" : "records with checksums", p, p > 0 ? o / p : 0, r);
  return 0;
}
