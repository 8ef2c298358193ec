// tutti_device_check PART [FILE | LINE] [--device cuda|emulated] [--small]: see checks.h.

#include <cstdio>
#include <cstring>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tests/gpu/device_check/checks.h"
#include "tutti/backend/gpu/kernels/device_functions.h"
#include "tutti/base/error.h"
#include "tutti/base/numeric/denormals.h"
#include "tutti/device/cuda_library.h"
#include "tutti/device/emulated/emulated_device.h"
#include "tutti/device/emulated/stand_in_libraries.h"

namespace tutti::device_check {
namespace {

constexpr const char* kUsage =
    "usage: tutti_device_check PART [--device cuda|emulated] [--small]\n"
    "  facts        what the device is; one copy, one kernel\n"
    "  record FILE  writes what the own kernels make of the conformance lines\n"
    "  own FILE     compares the own kernels with the reference and with that file\n"
    "  libraries    compares the kernels of libraries with the own ones\n"
    "  rates        copies, launches, products, and kernels that wait for memory\n"
    "  kernel LINE  runs the own kernel for one of the lines of rates, for a profiler\n";

struct Options {
  std::string part, operand, device = "cuda";
  bool small = false;
};

/// Returns nothing for a command that is not understood.
std::optional<Options> options_of(const std::vector<std::string>& words) {
  Options options;
  std::vector<std::string> plain;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--small")
      options.small = true;
    else if (words[i] == "--device" && i + 1 < words.size())
      options.device = words[++i];
    else
      plain.push_back(words[i]);
  }
  if (plain.empty()) return {};
  options.part = plain[0];
  const bool has_operand =
      options.part == "record" || options.part == "own" || options.part == "kernel";
  if (plain.size() != (has_operand ? 2 : 1)) return {};
  if (has_operand) options.operand = plain[1];
  if (options.device != "cuda" && options.device != "emulated") return {};
  return options;
}

std::unique_ptr<device::Device> opened(const Options& options) {
  if (options.device == "cuda") return device::open_cuda_device(0);
  auto emulated = device::make_emulated_device({.functions = backend::own_functions()});
  emulated->time_limit = std::numeric_limits<double>::infinity();  // it is slow, and never hangs
  if (options.part == "libraries")
    emulated->set_libraries(std::make_unique<device::StandInLibraries>());
  return emulated;
}

Outcome run(const Options& options) {
  Target target(opened(options), options.small);
  if (options.part == "facts") return facts(target);
  if (options.part == "record") return record_own_kernels(target, options.operand);
  if (options.part == "own") return check_own_kernels(target, options.operand);
  if (options.part == "libraries") return check_libraries(target);
  if (options.part == "rates") return measure_rates(target);
  if (options.part == "kernel") return run_kernel(target, options.operand);
  throw ConfigError("there is no part named " + options.part);
}

}  // namespace
}  // namespace tutti::device_check

int main(int argc, char** argv) {
  using namespace tutti::device_check;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a part that is killed has said what it found
  const auto options = options_of({argv + 1, argv + argc});
  if (!options) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  tutti::flush_denormals();  // as the program does
  try {
    return static_cast<int>(run(*options));
  } catch (const std::exception& error) {
    std::printf("error: %s\n", error.what());
    return 1;
  }
}
