#pragma once
// Generates trajectories of a chain that folds and unfolds, with the fraction Q of native contacts
// in each frame, which a network that has never seen Q is to discover. Any length of chain, any
// number of frames.
//
// A set consists of runs of kFramesOfRun frames, each a pure function of (seed, run) that starts
// folded. The temperature oscillates about the folding temperature, five times per run, so that
// chains of any length cross over; at one temperature the waiting times grow with the length.
// Unlike a simulation of a protein it has no side chains, no water, and only native contacts
// (go_chain.h); folded states are one helix bundle (native_fold.h).

#include <string>

#include "tutti/generate/protein/go_chain.h"

namespace tutti::generate {

inline constexpr int64_t kFramesOfRun = 1000;
/// Index of the first run of a validation set.
inline constexpr int64_t kFirstTestRun = int64_t{1} << 40;

struct ChainSpec {
  int64_t residues = 36;
  int64_t stride = 500;       ///< steps from frame to frame
  double temperature = 0.62;  ///< mean; above it chains are mostly unfolded
  double swing = 0.3;         ///< amplitude as a share of the mean; 0: constant
  uint64_t seed = 1;
};

struct ChainFrames {
  std::vector<float> coordinates;  ///< [frames, residues, 3], nm as in MDTraj's HDF5
  std::vector<float> q;            ///< [frames], 0 to 1
  std::vector<float> temperature;  ///< [frames]
};

/// Returns the first frames of a run, at most kFramesOfRun. Several threads may call it at once.
ChainFrames simulate_chain(const ChainSpec& spec, int64_t run, int64_t frames);

/// Returns the native structure as a PDB file: C-alpha atoms of alanines.
std::string native_pdb(int64_t residues);

}  // namespace tutti::generate
