// fuzz_replay TARGET FOLDER: passes every file of the folder to the target, as a fuzzer does:
// whole, cut, and damaged at random from fixed seeds. The corpus holds an example of every form and
// the findings of fuzzers, so this is an ordinary test.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"
#include "tutti/base/numeric/rng.h"

namespace {

using Bytes = std::vector<uint8_t>;

/// Makes one to four changes: a bit, a byte, a number of the header, a cut, a longer end, a doubled
/// part.
Bytes damaged(Bytes bytes, uint64_t seed) {
  tutti::Rng rng(seed, tutti::Purpose::test, 1);
  const auto place = [&](size_t below) {
    return below == 0 ? 0 : rng.below(static_cast<uint32_t>(below));
  };
  for (uint32_t changes = 1 + rng.below(4); changes > 0; --changes) {
    const size_t head = std::min<size_t>(bytes.size(), 64);  // where most damage shows
    const size_t at = place(rng.below(2) ? head : bytes.size());
    switch (bytes.empty() ? 4 : rng.below(6)) {
      case 0: bytes[at] ^= static_cast<uint8_t>(1u << rng.below(8)); break;
      case 1: bytes[at] = static_cast<uint8_t>(rng.below(256)); break;
      case 2:
        for (size_t i = at; i < std::min(at + 4, bytes.size()); ++i)
          bytes[i] = rng.below(2) ? 0xff : 0x7f;
        break;
      case 3: bytes.resize(place(bytes.size())); break;
      case 4:
        bytes.resize(bytes.size() + 1 + rng.below(40), static_cast<uint8_t>(rng.below(256)));
        break;
      default:
        const Bytes part(bytes.begin() + static_cast<ptrdiff_t>(at), bytes.end());
        bytes.insert(bytes.end(), part.begin(), part.end());
    }
  }
  return bytes;
}

int replay(const tutti::fuzz::Target& target, const char* folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry);
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    const Bytes bytes(std::istreambuf_iterator<char>(file), {});
    uint64_t seed = 0;
    try {
      target.run(bytes);
      for (size_t end = 0; end < bytes.size(); end += 1 + bytes.size() / 50)
        target.run(std::span(bytes).first(end));  // cut short at many places
      for (; seed < target.damaged / files.size(); ++seed) target.run(damaged(bytes, seed));
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s, damage %llu: %s\n", path.c_str(),
                   static_cast<unsigned long long>(seed), error.what());
      return 1;
    }
  }
  std::printf("%zu files\n", files.size());
  return files.empty() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3)
    for (const auto& targets :
         {tutti::fuzz::data_targets(), tutti::fuzz::text_targets(), tutti::fuzz::run_targets()})
      for (const tutti::fuzz::Target& target : targets)
        if (target.name == argv[1]) return replay(target, argv[2]);
  std::fputs("usage: fuzz_replay TARGET FOLDER\n", stderr);
  return 2;
}
