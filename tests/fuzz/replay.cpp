// fuzz_replay TARGET FOLDER: passes every file of the folder to the target, as a fuzzer does. The
// corpus holds an example of every form and the findings of fuzzers, so this is an ordinary test.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"

namespace {

int replay(const tutti::fuzz::Target& target, const char* folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry);
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<uint8_t> bytes(std::istreambuf_iterator<char>(file), {});
    try {
      target.run(bytes);
      for (size_t end = 0; end < bytes.size(); end += 1 + bytes.size() / 50)
        target.run(std::span(bytes).first(end));  // cut short at many places
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: %s\n", path.c_str(), error.what());
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
