#include "tutti/generate/protein/protein.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tutti::generate {
namespace {

double distance(const Place& a, const Place& b) {
  return std::sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) +
                   (a[2] - b[2]) * (a[2] - b[2]));
}

TEST(NativeFold, IsAChainWithContactsAndWithoutClashes) {
  for (const int64_t residues : {16, 21, 36, 100}) {
    const std::vector<Place> fold = native_fold(residues);
    ASSERT_EQ(std::ssize(fold), residues);
    for (size_t i = 0; i + 1 < fold.size(); ++i)
      EXPECT_NEAR(distance(fold[i], fold[i + 1]), kBond, 0.05) << residues << " " << i;
    for (size_t i = 0; i < fold.size(); ++i)
      for (size_t j = i + 3; j < fold.size(); ++j)
        EXPECT_GT(distance(fold[i], fold[j]), 4.5) << residues << " " << i << " " << j;
    const std::vector<NativePair> pairs = native_pairs(fold);
    EXPECT_GT(std::ssize(pairs), residues) << residues;
    EXPECT_GT(std::ranges::count_if(pairs, [](auto& p) { return p.second - p.first > 6; }), 8);
    EXPECT_EQ(native_fraction(pairs, fold), 1);
  }
}

TEST(GoChain, ForcesAreMinusTheGradientOfTheEnergy) {
  const GoChain chain(native_fold(24));
  std::vector<Place> places = chain.places(), forces, unused;
  Rng rng(3, Purpose::test, 0);
  for (Place& place : places)
    for (double& x : place) x += 0.5 * rng.normal();
  chain.energy(places, forces);
  constexpr double kApart = 1e-5;
  for (size_t i = 0; i < places.size(); ++i)
    for (size_t k = 0; k < 3; ++k) {
      std::vector<Place> higher = places, lower = places;
      higher[i][k] += kApart;
      lower[i][k] -= kApart;
      const double slope =
          (chain.energy(higher, unused) - chain.energy(lower, unused)) / (2 * kApart);
      EXPECT_NEAR(forces[i][k], -slope, 1e-5 * (1 + std::abs(slope))) << i << " " << k;
    }
}

/// Bonds are harmonic, like angles: each has half the temperature as mean energy.
TEST(GoChain, HasTheTemperatureThatItIsGiven) {
  GoChain chain(native_fold(24));
  Rng rng(4, Purpose::test, 0);
  const auto spread = [&] {  // mean square of the bonds' lengths about kBond: T / (2 k), k = 20
    double sum = 0;
    const auto& r = chain.places();
    for (size_t i = 0; i + 1 < r.size(); ++i) sum += std::pow(distance(r[i], r[i + 1]) - kBond, 2);
    return sum / static_cast<double>(r.size() - 1);
  };
  double mean = 0;
  constexpr int kSteps = 20000;
  for (int s = 0; s < 2 * kSteps; ++s) {
    chain.step(0.4, rng);
    if (s >= kSteps) mean += spread() / kSteps;
  }
  EXPECT_NEAR(mean, 0.4 / 40, 0.0025);
}

TEST(ProteinChain, FoldsAndUnfolds) {
  for (const int64_t residues : {20, 64}) {
    const ChainFrames frames = simulate_chain({.residues = residues}, 0, kFramesOfRun);
    int crossings = 0, folded = 0, unfolded = 0;
    bool is_folded = true;
    for (const float q : frames.q) {
      folded += q > 0.8f;
      unfolded += q < 0.3f;
      if (is_folded ? q < 0.3f : q > 0.8f) ++crossings, is_folded = !is_folded;
    }
    EXPECT_GT(folded, 50) << residues;
    EXPECT_GT(unfolded, 15) << residues;
    EXPECT_GE(crossings, 6) << residues;
  }
}

TEST(ProteinChain, IsAFunctionOfSeedAndRun) {
  const auto made = [](uint64_t seed, int64_t run, int64_t frames) {
    return simulate_chain({.residues = 18, .stride = 20, .seed = seed}, run, frames).coordinates;
  };
  const std::vector<float> first = made(1, 0, 4);
  EXPECT_EQ(first, made(1, 0, 4));
  EXPECT_NE(first, made(2, 0, 4));
  EXPECT_NE(first, made(1, 1, 4));
  const std::vector<float> longer = made(1, 0, 6);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), longer.begin()));
}

TEST(ProteinChain, ItsNativeStructureIsAPdbFile) {
  const std::string text = native_pdb(16);
  EXPECT_EQ(text.substr(0, 30), "ATOM      1  CA  ALA A   1    ");
  EXPECT_EQ(std::ranges::count(text, '\n'), 17);
}

}  // namespace
}  // namespace tutti::generate
