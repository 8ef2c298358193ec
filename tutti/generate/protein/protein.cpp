#include "tutti/generate/protein/protein.h"

#include <fmt/format.h>

namespace tutti::generate {
namespace {

constexpr int64_t kFramesOfCycle = kFramesOfRun / 5;

/// Goes from 0 up to 1, down to -1 and back to 0.
double wave(int64_t frame) {
  const double phase = static_cast<double>(frame % kFramesOfCycle) / kFramesOfCycle;
  return phase < 0.25 ? 4 * phase : phase < 0.75 ? 2 - 4 * phase : 4 * phase - 4;
}

}  // namespace

ChainFrames simulate_chain(const ChainSpec& spec, int64_t run, int64_t frames) {
  ChainFrames made;
  GoChain chain(native_fold(spec.residues));
  Rng rng(spec.seed, Purpose::generate, static_cast<uint64_t>(run));
  for (int64_t f = 0; f < frames; ++f) {
    const double temperature = spec.temperature * (1 + spec.swing * wave(f));
    for (int64_t s = 0; s < spec.stride; ++s) chain.step(temperature, rng);
    for (const Place& place : chain.places())
      for (const double x : place) made.coordinates.push_back(static_cast<float>(x / 10));
    made.q.push_back(static_cast<float>(chain.native_fraction()));
    made.temperature.push_back(static_cast<float>(temperature));
  }
  return made;
}

std::string native_pdb(int64_t residues) {
  std::string text;
  int64_t number = 0;
  for (const Place& p : native_fold(residues)) {
    ++number;
    text +=
        fmt::format("ATOM  {:5}  CA  ALA A{:4}    {:8.3f}{:8.3f}{:8.3f}  1.00  0.00           C\n",
                    number, number, p[0], p[1], p[2]);
  }
  return text + "END\n";
}

}  // namespace tutti::generate
