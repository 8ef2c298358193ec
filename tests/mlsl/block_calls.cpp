// Tests that AlltoAllv with other counts each time leaves nothing behind.

#include <dirent.h>

#include <fstream>
#include <string>
#include <vector>

#include "calls.h"

using namespace MLSL;

namespace {

size_t entries(const char* directory) {
  size_t count = 0;
  if (DIR* const open = opendir(directory)) {
    while (readdir(open) != nullptr) ++count;
    closedir(open);
  }
  return count;
}

size_t lines(const char* path) {
  std::ifstream file(path);
  size_t count = 0;
  for (std::string line; std::getline(file, line);) ++count;
  return count;
}

// Returns the resident memory in KiB.
size_t resident() {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;)
    if (word == "VmRSS:") {
      size_t size = 0;
      file >> size;
      return size;
    }
  return 0;
}

// Makes calls of AlltoAllv with counts that no rank has had before; often there is nothing to send.
class Blocks {
 public:
  Blocks(size_t size, size_t rank) : size_(size), rank_(rank) {}
  void run(Environment& environment, Distribution& world, size_t round) {
    sends_.clear(), receives_.clear(), from_.clear(), to_.clear(), out_.clear();
    size_t room = 0;
    for (size_t p = 0; p < size_; ++p) {
      from_.push_back(out_.size());
      sends_.push_back(count(rank_, p, round));
      out_.insert(out_.end(), sends_.back(), value(rank_, p, round));
      to_.push_back(room);
      receives_.push_back(count(p, rank_, round));
      room += receives_.back();
    }
    in_.assign(room, -1);
    environment.Wait(world.AlltoAllv(out_.data(), sends_.data(), from_.data(), in_.data(),
                                     receives_.data(), to_.data(), DT_FLOAT, GT_GLOBAL));
    for (size_t p = 0; p < size_; ++p)
      for (size_t i = 0; i < receives_[p]; ++i)
        expect(in_[to_[p] + i] == value(p, rank_, round), "a block of AlltoAllv");
  }

 private:
  static size_t count(size_t from, size_t to, size_t round) {
    return (from * 31 + to * 17 + round * 7) % 101 * (round % 4);
  }
  static float value(size_t from, size_t to, size_t round) {
    return static_cast<float>(from * 100 + to * 10 + round % 10);
  }
  size_t size_, rank_;
  std::vector<float> out_, in_;
  std::vector<size_t> sends_, receives_, from_, to_;
};

}  // namespace

void blocks(Environment& environment, size_t calls) {
  const size_t size = environment.GetProcessCount();
  Distribution* world = environment.CreateDistribution(size, 1);
  Blocks blocks(size, environment.GetProcessIdx());
  size_t descriptors = 0, mappings = 0, memory = 0;
  for (size_t round = 0; round < calls; ++round) {
    if (round == 1000) {
      descriptors = entries("/proc/self/fd");
      mappings = lines("/proc/self/maps");
      memory = resident();
    }
    blocks.run(environment, *world, round);
  }
  constexpr size_t kSomeMappings = 8;  // made by the allocator, and by MPI
#ifdef __SANITIZE_ADDRESS__
  constexpr size_t kSomeMemory = size_t{300} << 10;  // KiB; it keeps 256 MiB of freed memory
#else
  constexpr size_t kSomeMemory = 4096;  // KiB
#endif
  expect(entries("/proc/self/fd") == descriptors, "descriptors do not grow");
  expect(lines("/proc/self/maps") <= mappings + kSomeMappings, "mappings do not grow");
  expect(resident() <= memory + kSomeMemory, "memory does not grow");
}
