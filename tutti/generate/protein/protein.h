#pragma once
// Trajectories of a chain that folds and unfolds, with the fraction Q of native contacts of each
// frame: what a network that has never seen Q is to find by itself. Any length of chain, any number
// of frames.
//
// A set is cut into runs of kFramesOfRun frames, each a pure function of (seed, run) that starts
// folded. The temperature goes up and down about the folding temperature, five times a run, so that
// chains of any length cross over, whose waiting times at one temperature grow with their length.
// What differs from a simulation of a protein: no side chains, no water, and no contacts that the
// native structure does not have (go_chain.h); folded states are one helix bundle (native_fold.h).

#include <string>

#include "tutti/generate/protein/go_chain.h"

namespace tutti::data {

inline constexpr int64_t kFramesOfRun = 1000;
/// Index of the first run of a validation set.
inline constexpr int64_t kFirstTestRun = int64_t{1} << 40;

struct ChainSpec {
  int64_t residues = 36;
  int64_t stride = 500;       ///< steps from frame to frame
  double temperature = 0.62;  ///< in the middle; above it chains are unfolded most of the time
  double swing = 0.3;         ///< a share of it, up and down; 0: one temperature
  uint64_t seed = 1;
};

struct ChainFrames {
  std::vector<float> coordinates;  ///< [frames, residues, 3], nm as MDTraj's HDF5 has them
  std::vector<float> q;            ///< [frames], 0 to 1
  std::vector<float> temperature;  ///< [frames]
};

/// The first frames of a run, at most kFramesOfRun. May be called by several threads at once.
ChainFrames simulate_chain(const ChainSpec& spec, int64_t run, int64_t frames);

/// The native structure as a PDB file: C-alpha atoms of alanines.
std::string native_pdb(int64_t residues);

}  // namespace tutti::data
