#include "tutti/generate/sample_sets.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <functional>
#include <iterator>
#include <system_error>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/own_file.h"
#include "tutti/data/each_sample.h"
#include "tutti/data/format/array/hdf5_arrays.h"
#include "tutti/data/format/sets/tf_example.h"
#include "tutti/data/format/sets/tfrecord.h"

namespace tutti::generate {
using data::ElementType;
namespace {

namespace fs = std::filesystem;

/// Writes a file under another name until it is complete.
void write_whole(const fs::path& path, const std::function<void(const fs::path&)>& write) {
  const fs::path partial = path.parent_path() / ("." + path.filename().string() + ".partial");
  std::error_code failed;
  try {
    write(partial);
    fs::rename(partial, path, failed);
  } catch (...) {
    fs::remove(partial, failed);
    throw;
  }
  if (failed)
    throw IoError(fmt::format("{}: cannot complete: {}", path.string(), failed.message()));
}

void make_folder(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    throw IoError(fmt::format("cannot make the folder {}: {}", folder.string(), failed.message()));
}

/// Samples are made in a hidden folder inside their part's folder, which may be on another disk.
constexpr const char* kMade = ".partial";

/// A file of a set with single-file parts: all are made before any takes its place.
struct FileOfSet {
  std::string name;
  std::function<void(const fs::path&)> write;
};
void write_together(const fs::path& folder, const std::vector<FileOfSet>& files) {
  const fs::path made = folder / kMade;
  make_folder(folder);
  std::error_code failed;
  fs::remove_all(made, failed);  // left by a killed run
  try {
    make_folder(made);
    for (const FileOfSet& file : files) file.write(made / file.name);
    for (const FileOfSet& file : files) fs::rename(made / file.name, folder / file.name);
  } catch (const fs::filesystem_error& error) {
    fs::remove_all(made, failed);
    throw IoError(fmt::format("{}: cannot complete: {}", folder.string(), error.what()));
  } catch (...) {
    fs::remove_all(made, failed);
    throw;
  }
  fs::remove(made, failed);
}

/// Gives the part exactly the new samples: old ones belong to another set, and would be taken for
/// samples of this one.
void replace_samples(const fs::path& part, const fs::path& ending) {
  try {
    if (!fs::exists(part)) return;
    const auto files = [](const fs::path& folder) {
      return std::vector<fs::path>(fs::directory_iterator(folder), {});
    };
    for (const fs::path& old : files(part))
      if (old.extension() == ending) fs::remove(old);
    if (fs::exists(part / kMade))
      for (const fs::path& file : files(part / kMade)) fs::rename(file, part / file.filename());
    fs::remove(part / kMade);
    if (fs::is_empty(part)) fs::remove(part);
  } catch (const fs::filesystem_error& error) {
    throw IoError(fmt::format("{}: cannot complete: {}", part.string(), error.what()));
  }
}

/// Removes the remains of an incomplete set, and a part without samples.
void remove_made(const fs::path& part) {
  std::error_code unknown;  // there may be none, and the cause is reported elsewhere
  fs::remove_all(part / kMade, unknown);
  if (fs::is_empty(part, unknown)) fs::remove(part, unknown);
}

/// Writes sample i of a part, given its file, its index among all samples of the seed, and the
/// part. Existing samples stay until both parts are made.
void write_parts(const fs::path& folder, const SampleCounts& counts, int64_t first_test,
                 int threads, const char* name,
                 const std::function<void(const fs::path&, int64_t, bool)>& write) {
  const fs::path parts[] = {folder / "train", folder / "validation"};
  for (const fs::path& part : parts) remove_made(part);
  try {
    for (const bool train : {true, false}) {
      const fs::path made = parts[train ? 0 : 1] / kMade;
      const int64_t count = train ? counts.train : counts.test;
      if (count == 0) continue;
      make_folder(made);
      data::for_each_sample(count, threads, [&](int64_t i) {
        write(made / fmt::format(fmt::runtime(name), i), train ? i : first_test + i, train);
      });
    }
  } catch (...) {
    for (const fs::path& part : parts) remove_made(part);
    throw;
  }
  for (const fs::path& part : parts) replace_samples(part, fs::path(name).extension());
}

data::TfFeature bytes_feature(std::string name, std::span<const uint8_t> bytes) {
  data::TfFeature feature{.name = std::move(name), .kind = data::TfFeature::Kind::bytes};
  feature.bytes.push_back(bytes);
  return feature;
}

/// Calls generate_volume(), and names the volume and the relevant flags in its refusal.
void generate_named_volume(const VolumeSpec& spec, int64_t index, int16_t* counts) {
  try {
    generate_volume(spec, index, counts);
  } catch (const ConfigError& error) {
    throw ConfigError(
        fmt::format("volume {} of seed {}, with --particles {} and --cell {}: {}. No set is made",
                    index, spec.seed, spec.particles, spec.cell, error.what()));
  }
}

/// The samples in one of a part's files, consecutive samples of one seed.
struct SampleRange {
  int64_t first = 0, count = 0;
};

/// Does the same as write_parts() with files of kSamplesPerFile samples.
void write_files(const fs::path& folder, const SampleCounts& counts, int64_t first_test,
                 int threads, const char* name,
                 const std::function<void(const fs::path&, const SampleRange&)>& write) {
  const auto files = [](int64_t samples) {
    return (samples + kSamplesPerFile - 1) / kSamplesPerFile;
  };
  write_parts(folder, {.train = files(counts.train), .test = files(counts.test)}, first_test,
              threads, name, [&](const fs::path& path, int64_t index, bool train) {
                const int64_t start = train ? 0 : first_test;
                const int64_t before = (index - start) * kSamplesPerFile;
                const int64_t all = train ? counts.train : counts.test;
                write(path, {start + before, std::min(kSamplesPerFile, all - before)});
              });
}

void append_halves(std::vector<data::Half>& to, const std::vector<float>& values) {
  for (const float x : values) to.push_back(data::to_half(x));
}

}  // namespace

void write_cosmoflow(const fs::path& folder, const VolumeSpec& spec, const SampleCounts& counts,
                     int threads) {
  const auto elements = static_cast<size_t>(spec.side) * static_cast<size_t>(spec.side) *
                        static_cast<size_t>(spec.side) * kRedshifts.size();
  write_parts(folder, counts, kFirstTestVolume, threads, "univ_{:08}.tfrecord",
              [&](const fs::path& path, int64_t index, bool) {
                std::vector<int16_t> volume(elements);
                generate_named_volume(spec, index, volume.data());
                const std::array<float, 4> y =
                    unit_parameters(cosmology_of(spec, index), spec.spread);
                data::TfFeature target{.name = "y", .kind = data::TfFeature::Kind::floats};
                target.floats.assign(y.begin(), y.end());
                const std::vector<data::TfFeature> features = {
                    bytes_feature("x", {reinterpret_cast<const uint8_t*>(volume.data()),
                                        volume.size() * sizeof(int16_t)}),
                    std::move(target)};
                const std::vector<std::vector<uint8_t>> records = {data::example_record(features)};
                data::write_tfrecords(path, records);
              });
}

void write_deepcam(const fs::path& folder, const ClimateSpec& spec, const SampleCounts& counts,
                   int threads) {
  const int64_t rows = spec.grid.rows, columns = spec.grid.columns;
  std::vector<ClimateStatistics> statistics(static_cast<size_t>(counts.train));
  write_parts(
      folder, counts, kFirstTestClimate, threads, "data-{:08}.h5",
      [&](const fs::path& path, int64_t index, bool train) {
        std::vector<float> fields(static_cast<size_t>(spec.grid.pixels()) * kClimateChannels);
        std::vector<uint8_t> mask(static_cast<size_t>(spec.grid.pixels()));
        generate_climate(spec, index, fields.data(), mask.data());
        if (train)
          statistics[static_cast<size_t>(index)] = climate_statistics(spec.grid, fields.data());
        const std::vector<data::ArrayRef> arrays = {
            {"climate/data", ElementType::f32, {rows, columns, kClimateChannels}, fields.data()},
            {"climate/labels_0", ElementType::u8, {rows, columns}, mask.data()}};
        data::write_hdf5(path, arrays);
      });
  if (counts.train == 0) return;
  ClimateStatistics all;
  for (const ClimateStatistics& one : statistics) all = all + one;
  const std::vector<data::ArrayRef> arrays = {
      {"climate/minval", ElementType::f32, {kClimateChannels}, all.low.data()},
      {"climate/maxval", ElementType::f32, {kClimateChannels}, all.high.data()}};
  write_whole(folder / "stats.h5", [&](const fs::path& path) { data::write_hdf5(path, arrays); });
}

void write_protein(const fs::path& folder, const ChainSpec& spec, const SampleCounts& counts,
                   int threads) {
  const auto write = [&](const fs::path& path, int64_t first, int64_t count) {
    ChainFrames all;
    const auto resize = [&](std::vector<float>& list, int64_t each) {
      list.resize(static_cast<size_t>(count * each));
    };
    resize(all.coordinates, 3 * spec.residues);
    resize(all.q, 1);
    resize(all.temperature, 1);
    data::for_each_sample((count + kFramesOfRun - 1) / kFramesOfRun, threads, [&](int64_t run) {
      const int64_t at = run * kFramesOfRun;
      const ChainFrames made =
          simulate_chain(spec, first + run, std::min(kFramesOfRun, count - at));
      std::ranges::copy(made.coordinates, all.coordinates.begin() + at * 3 * spec.residues);
      std::ranges::copy(made.q, all.q.begin() + at);
      std::ranges::copy(made.temperature, all.temperature.begin() + at);
    });
    const std::vector<data::ArrayRef> arrays = {
        {"coordinates", ElementType::f32, {count, spec.residues, 3}, all.coordinates.data()},
        {"q", ElementType::f32, {count}, all.q.data()},
        {"temperature", ElementType::f32, {count}, all.temperature.data()}};
    data::write_hdf5(path, arrays);
  };
  write_together(
      folder,
      {{"train.h5", [&](const fs::path& p) { write(p, 0, counts.train); }},
       {"validation.h5", [&](const fs::path& p) { write(p, kFirstTestRun, counts.test); }},
       {"native.pdb", [&](const fs::path& p) {
          auto file = output_stream(p);
          file << native_pdb(spec.residues) << std::flush;
          if (!file)
            throw IoError(fmt::format("{}: cannot write: {}", p.string(), file_error(errno)));
        }}});
}

void write_vibrations(const fs::path& folder, const VibrationSpec& spec, const SampleCounts& counts,
                      int threads) {
  const auto write = [&](const fs::path& path, int64_t first, int64_t count) {
    std::vector<Vibration> records(static_cast<size_t>(count));
    data::for_each_sample(count, threads, [&](int64_t i) {
      records[static_cast<size_t>(i)] = generate_vibration(spec, first + i);
    });
    std::vector<float> signals, clean, parameters;
    std::vector<uint8_t> classes, padding;  // i8 in files
    for (const Vibration& record : records) {
      std::ranges::copy(record.signals, std::back_inserter(signals));
      std::ranges::copy(record.clean, std::back_inserter(clean));
      std::ranges::copy(record.padding, std::back_inserter(padding));
      std::ranges::copy(record.parameters, std::back_inserter(parameters));
      classes.push_back(record.weak);
    }
    const std::vector<int64_t> extents = {count, spec.samples, spec.masses};
    const std::vector<data::ArrayRef> arrays = {
        {"signals", ElementType::f32, extents, signals.data()},
        {"padding", ElementType::i8, {count, spec.samples / kVibrationPiece}, padding.data()},
        {"class", ElementType::u8, {count}, classes.data()},
        {"parameters", ElementType::f32, {count, 2}, parameters.data()},
        {"clean", ElementType::f32, extents, clean.data()}};
    data::write_hdf5(path, arrays);
  };
  const auto validation = [&](const fs::path& p) { write(p, kFirstTestVibration, counts.test); };
  write_together(folder, {{"train.h5", [&](const fs::path& p) { write(p, 0, counts.train); }},
                          {"validation.h5", validation}});
}

void write_neurons(const fs::path& folder, const TissueSpec& spec, const SampleCounts& counts,
                   int threads) {
  write_parts(folder, counts, kFirstTestTissue, threads, "volume-{:03}.h5",
              [&](const fs::path& path, int64_t index, bool) {
                const Tissue tissue = generate_tissue(spec, index);
                const std::vector<int64_t> extents(3, spec.side);
                const std::vector<data::ArrayRef> arrays = {
                    {"raw", ElementType::u8, extents, tissue.image.data()},
                    {"labels", ElementType::u32, extents, tissue.labels.data()}};
                data::write_hdf5(path, arrays);
              });
}

void write_cbed(const fs::path& folder, const CbedSpec& spec, const SampleCounts& counts,
                int threads) {
  const CbedGenerator generator(spec);
  write_files(folder, counts, kFirstTestCbed, threads, "cbed-{:08}.h5",
              [&](const fs::path& path, const SampleRange& samples) {
                std::vector<data::Half> images, potentials;
                std::vector<uint8_t> classes;
                std::vector<float> parameters;
                for (int64_t i = 0; i < samples.count; ++i) {
                  const CbedSample made = generator.sample(samples.first + i);
                  append_halves(images, made.pattern);
                  append_halves(potentials, made.potential);
                  classes.push_back(static_cast<uint8_t>(made.kind));
                  std::ranges::copy(made.parameters, std::back_inserter(parameters));
                }
                const std::vector<int64_t> maps = {samples.count, 1, spec.side, spec.side};
                const std::vector<data::ArrayRef> arrays = {
                    {"image", ElementType::f16, maps, images.data()},
                    {"class", ElementType::u8, {samples.count}, classes.data()},
                    {"parameters", ElementType::f32, {samples.count, 4}, parameters.data()},
                    {"potential", ElementType::f16, maps, potentials.data()}};
                data::write_hdf5(path, arrays);
              });
}

void write_stem(const fs::path& folder, const StemSpec& spec, const SampleCounts& counts,
                int threads) {
  const StemGenerator generator(spec);
  write_files(
      folder, counts, kFirstTestStem, threads, "stem-{:08}.h5",
      [&](const fs::path& path, const SampleRange& samples) {
        std::vector<data::Half> images, clean;
        std::vector<uint8_t> classes, columns;
        for (int64_t i = 0; i < samples.count; ++i) {
          const StemSample made = generator.sample(samples.first + i);
          append_halves(images, made.image);
          append_halves(clean, made.clean);
          classes.push_back(static_cast<uint8_t>(made.kind));
          columns.insert(columns.end(), made.columns.begin(), made.columns.end());
        }
        const std::vector<int64_t> maps = {samples.count, 1, spec.side, spec.side};
        const std::vector<data::ArrayRef> arrays = {
            {"image", ElementType::f16, maps, images.data()},
            {"class", ElementType::u8, {samples.count}, classes.data()},
            {"columns", ElementType::u8, {samples.count, spec.side, spec.side}, columns.data()},
            {"clean", ElementType::f16, maps, clean.data()}};
        data::write_hdf5(path, arrays);
      });
}

void write_clicks(const fs::path& folder, const ClickSpec& spec, const SampleCounts& counts,
                  int threads) {
  constexpr int64_t kFirstTestLog = kFirstTestClick / kLinesOfLog;
  static_assert(kFirstTestLog * kLinesOfLog == kFirstTestClick);
  const auto logs = [](int64_t lines) { return (lines + kLinesOfLog - 1) / kLinesOfLog; };
  write_parts(
      folder, {.train = logs(counts.train), .test = logs(counts.test)}, kFirstTestLog, threads,
      "clicks-{:05}.txt", [&](const fs::path& path, int64_t log, bool train) {
        const int64_t first = log * kLinesOfLog;
        const int64_t end = train ? counts.train : kFirstTestClick + counts.test;
        auto file = output_stream(path);
        errno = 0;
        for (int64_t i = first; i < std::min(first + kLinesOfLog, end); ++i)
          file << click_line(spec, generate_click(spec, i));
        file << std::flush;
        if (!file)
          throw IoError(fmt::format("{}: cannot write: {}", path.string(), file_error(errno)));
      });
}

void write_text(const fs::path& folder, const SentenceSpec& spec, const SampleCounts& counts,
                int threads) {
  constexpr int64_t kBlock = 10'000;
  const auto write = [&](const fs::path& path, int64_t first, int64_t count) {
    auto file = output_stream(path);
    errno = 0;
    for (int64_t at = 0; at < count; at += kBlock * threads) {
      std::vector<std::string> blocks(static_cast<size_t>(threads));
      data::for_each_sample(threads, threads, [&](int64_t b) {
        const int64_t begin = at + b * kBlock, end = std::min(begin + kBlock, count);
        for (int64_t i = begin; i < end; ++i)
          blocks[static_cast<size_t>(b)] += generate_sentence(spec, first + i);
      });
      for (const std::string& block : blocks) file << block;
    }
    file.close();
    if (!file) throw IoError(fmt::format("{}: cannot write: {}", path.string(), file_error(errno)));
  };
  write_together(folder,
                 {{"train.txt", [&](const fs::path& path) { write(path, 0, counts.train); }},
                  {"validation.txt",
                   [&](const fs::path& path) { write(path, kFirstTestSentence, counts.test); }}});
}

void write_token_pairs(const fs::path& folder, const SequenceSpec& spec,
                       const SampleCounts& counts) {
  (void)asked_of(spec, {});  // refuses an unknown task before anything is written
  make_folder(folder / "source");
  make_folder(folder / "target");
  const auto write = [&](const char* name, int64_t first, int64_t count) {
    write_sequences(folder / "source" / name, folder / "target" / name, spec, first, count);
  };
  write("train-00000.tokens", 0, counts.train);
  write("validation-00000.tokens", kFirstTestSequence, counts.test);
}

}  // namespace tutti::generate
