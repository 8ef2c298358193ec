#include "tutti/generate/pictures/picture_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "tutti/base/error.h"
#include "tutti/base/own_file.h"
#include "tutti/data/each_sample.h"
#include "tutti/data/file/tar_writer.h"
#include "tutti/data/images/jpeg_encoder.h"

namespace tutti::generate {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMadePictures = ".pictures.partial";

std::vector<uint8_t> coded_picture(const Picture& picture, int64_t index) {
  return data::encode_jpeg(
      picture.rgb, {picture.height, picture.width}, 3,
      {.quality = 75 + static_cast<int>(index * 7 % 21), .progressive = index % 20 == 13});
}

void write_bytes(const fs::path& path, const std::vector<uint8_t>& bytes) {
  auto out = output_stream(path);
  errno = 0;
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) throw IoError(fmt::format("{}: cannot write: {}", path.string(), file_error(errno)));
}

/// Says by its name whether we generated the file.
bool was_generated(const fs::path& file) {
  const std::string name = file.filename().string();
  return (name.starts_with("img_") && name.ends_with(".jpg")) ||
         (name.starts_with("shard-") && name.ends_with(".tar"));
}

void make_room(const fs::path& part, bool replace) {
  if (!fs::exists(part)) return;
  bool others = false, any = false;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(part))
    if (!entry.is_directory()) {
      any = true;
      others = others || !was_generated(entry.path());
    }
  if (others)
    throw ConfigError(
        fmt::format("{} holds files that were not generated, which are never "
                    "replaced: choose another folder",
                    part.string()));
  if (any && !replace)
    throw ConfigError(
        fmt::format("{} exists: choose another folder, or replace the data set there with --force",
                    part.string()));
}

void write_folders(const fs::path& made, const PictureSpec& spec, int64_t first, int64_t count,
                   int threads) {
  for (int c = 0; c < spec.classes; ++c) fs::create_directories(made / picture_class(spec, c));
  data::for_each_sample(count, threads, [&](int64_t i) {
    const Picture picture = generate_picture(spec, first + i);
    write_bytes(made / picture_class(spec, picture.label) / fmt::format("img_{:08}.jpg", i),
                coded_picture(picture, i));
  });
}

void write_shards(const fs::path& made, const PictureSpec& spec, int64_t first, int64_t count,
                  int64_t per_tar, int threads) {
  fs::create_directories(made);
  data::for_each_sample((count + per_tar - 1) / per_tar, threads, [&](int64_t shard) {
    data::TarWriter tar(made / fmt::format("shard-{:06}.tar", shard));
    for (int64_t i = shard * per_tar; i < std::min(count, (shard + 1) * per_tar); ++i) {
      const Picture picture = generate_picture(spec, first + i);
      const std::string key = fmt::format("img_{:08}", i), label = std::to_string(picture.label);
      tar.add(key + ".jpg", coded_picture(picture, i));
      tar.add(key + ".cls", {reinterpret_cast<const uint8_t*>(label.data()), label.size()});
    }
    tar.finish();
  });
}

}  // namespace

void write_pictures(const fs::path& folder, const PictureSpec& spec, const SampleCounts& counts,
                    int64_t per_tar, bool replace, int threads) {
  if (counts.train < spec.classes || counts.test < spec.classes)
    throw ConfigError(
        fmt::format("{} training and {} test pictures of {} classes: give at least "
                    "one of each class, or fewer --picture-classes",
                    counts.train, counts.test, spec.classes));
  const fs::path partial = folder / kMadePictures;
  std::error_code unknown;
  try {
    for (const char* part : {"train", "validation"}) make_room(folder / part, replace);
    fs::remove_all(partial);
    for (const bool train : {true, false}) {
      const fs::path made = partial / (train ? "train" : "validation");
      const int64_t first = train ? 0 : kFirstTestPicture / spec.classes * spec.classes,
                    count = train ? counts.train : counts.test;
      if (per_tar > 0)
        write_shards(made, spec, first, count, per_tar, threads);
      else
        write_folders(made, spec, first, count, threads);
    }
    for (const char* part : {"train", "validation"}) {
      fs::remove_all(folder / part);
      fs::rename(partial / part, folder / part);
    }
    fs::remove_all(partial);
  } catch (const fs::filesystem_error& error) {
    fs::remove_all(partial, unknown);
    throw IoError(fmt::format("{}: the set cannot be made: {}", folder.string(), error.what()));
  } catch (...) {
    fs::remove_all(partial, unknown);
    throw;
  }
}

}  // namespace tutti::generate
