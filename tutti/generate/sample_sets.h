#pragma once
// Writes whole data sets of generated samples, in the formats of the published ones.

#include <filesystem>
#include <string_view>

#include "tutti/generate/clicks.h"
#include "tutti/generate/climate/climate.h"
#include "tutti/generate/cosmology/cosmology.h"
#include "tutti/generate/microscopy/cbed.h"
#include "tutti/generate/microscopy/stem.h"
#include "tutti/generate/neurons.h"
#include "tutti/generate/protein/protein.h"
#include "tutti/generate/text.h"
#include "tutti/generate/token_pairs.h"
#include "tutti/generate/vibrations.h"

namespace tutti::generate {

/// The number of samples in each part.
struct SampleCounts {
  int64_t train = 0, test = 0;
};

/// Writes FOLDER/train and FOLDER/validation with one TFRecord per volume,
/// "univ_00000000.tfrecord". The files do not depend on `threads`. They replace existing samples
/// once all are made: a failed run leaves nothing, a killed one a hidden folder. IoError.
void write_cosmoflow(const std::filesystem::path& folder, const VolumeSpec& spec,
                     const SampleCounts& counts, int threads);

/// Writes FOLDER/train and FOLDER/validation with one HDF5 file per sample, "data-00000000.h5", and
/// stats.h5 with the extremes of the training samples' channels. Otherwise as write_cosmoflow.
void write_deepcam(const std::filesystem::path& folder, const ClimateSpec& spec,
                   const SampleCounts& counts, int threads);

/// Writes FOLDER/train.h5 and FOLDER/validation.h5 with one frame per sample: `coordinates`
/// [frames, residues, 3] in nm, `q` and `temperature` [frames]; and native.pdb. The files do not
/// depend on `threads`, and each is replaced once all are complete. IoError.
void write_protein(const std::filesystem::path& folder, const ChainSpec& spec,
                   const SampleCounts& counts, int threads);

/// Does the same for records: `signals` and `clean` f32 [records, samples, masses], `padding` i8
/// [records, samples / kVibrationPiece], `class` u8 [records] and `parameters` f32 [records, 2].
void write_vibrations(const std::filesystem::path& folder, const VibrationSpec& spec,
                      const SampleCounts& counts, int threads);

/// Writes FOLDER/train and FOLDER/validation with one HDF5 file per volume, "volume-000.h5": raw u8
/// and labels u32. Otherwise as write_cosmoflow.
void write_neurons(const std::filesystem::path& folder, const TissueSpec& spec,
                   const SampleCounts& counts, int threads);

/// Writes FOLDER/train and FOLDER/validation with HDF5 files of kSamplesPerFile samples (fewer in
/// the last), "cbed-00000000.h5": image f16 [N, 1, S, S], class u8 [N], parameters f32 [N, 4] and
/// potential f16 [N, 1, S, S]. Otherwise as write_cosmoflow.
void write_cbed(const std::filesystem::path& folder, const CbedSpec& spec,
                const SampleCounts& counts, int threads);
/// Does the same with "stem-00000000.h5": image and clean f16 [N, 1, S, S], class u8 [N], columns
/// u8 [N, S, S].
void write_stem(const std::filesystem::path& folder, const StemSpec& spec,
                const SampleCounts& counts, int threads);
inline constexpr int64_t kSamplesPerFile = 64;
/// Writes FOLDER/train and FOLDER/validation with logs of kLinesOfLog lines each,
/// "clicks-00000.txt", tab separated like Criteo's. Otherwise as write_cosmoflow.
inline constexpr int64_t kLinesOfLog = 100'000;
void write_clicks(const std::filesystem::path& folder, const ClickSpec& spec,
                  const SampleCounts& counts, int threads);
/// Writes FOLDER/train.txt and FOLDER/validation.txt with one line per sample; both are
/// replaced once both are complete. The files do not depend on `threads`. IoError.
void write_text(const std::filesystem::path& folder, const SentenceSpec& spec,
                const SampleCounts& counts, int threads);
/// Writes FOLDER/source and FOLDER/target, each with train-00000.tokens and
/// validation-00000.tokens. IoError.
void write_token_pairs(const std::filesystem::path& folder, const SequenceSpec& spec,
                       const SampleCounts& counts);

}  // namespace tutti::generate
