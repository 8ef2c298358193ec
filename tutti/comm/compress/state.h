#pragma once
// What a compressed reduction keeps from step to step on each rank, and so belongs into a
// checkpoint: pieces of one float array, by name.
//
//   gradient   what of this rank's gradient was not yet sent: all of the bucket (of its slice, for
//              hitopk: `sum`)
//   sum        what of a sum that this rank encodes again was not yet sent: a slice of the bucket
//   basis      PowerSGD's Q, the same on all ranks
//
// A piece is saved as a tensor "compression.rank3.bucket 2.sum@1024": rank, bucket, kind and where
// in the bucket it begins, its length being the tensor's. So a checkpoint says by itself what it
// holds, and any number of ranks can take it up:
//   the same pieces   every rank gets its own floats back: the resumed run has the same bits
//   other pieces      (another number of ranks or nodes, another method) what matters is the sum of
//                     all residuals, which is the part of the gradient that the weights have not
//                     seen. It is dealt out evenly: every element equally to all ranks that keep
//                     one for it. Nothing is lost but the last bit; the run goes on otherwise than
//                     the old one would have, and the caller says so in the log. Q is taken from
//                     any rank where it fits, and begun anew otherwise.
//
// S floats a rank, P ranks that saved, P' that restore: the same pieces are read by their owner
// alone, S a rank. Otherwise rank p reads those of the ranks p, p + P', ... one after another, adds
// them up, and an allreduce adds the rest: S P/P' are read, 2 S travel, and one piece and the sum
// of one bucket are held. Nowhere is there a multiple of P.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/comm/schedule/schedule.h"

namespace tutti::comm {

struct StatePiece {
  enum class Kind : uint8_t { gradient, sum, basis };
  Kind kind = Kind::gradient;
  Slice covers;     ///< of the bucket, in floats; basis: from 0, its own length
  int holders = 1;  ///< ranks that keep a piece of this kind for these elements
  size_t at = 0;    ///< where it begins in the state
};

/// The pieces lie one after another.
struct StateLayout {
  std::vector<StatePiece> pieces;
  size_t floats = 0;
  /// Appends a piece, empty ones too.
  void add(StatePiece::Kind kind, Slice covers, int holders);
};

/// One piece as it is saved. The memory belongs to whoever made it.
struct SavedPiece {
  std::string name;
  std::span<const float> values;
};

/// What all ranks have saved, where it lies. Not thread-safe.
class SavedState {
 public:
  virtual ~SavedState() = default;
  virtual int ranks() const = 0;  ///< that saved
  /// The names of one rank's tensors, those that are no compression state among them.
  virtual std::vector<std::string> names(int rank) = 0;
  virtual size_t floats(int rank, const std::string& name) = 0;
  virtual std::vector<float> read(int rank, const std::string& name) = 0;
};

/// "compression.rank3.bucket 2.sum@1024".
std::string piece_name(int rank, std::string_view bucket, const StatePiece& piece);
/// Whether a saved tensor of this name is a piece, of any rank and bucket.
bool is_piece(std::string_view name);
/// A rank's state by piece, ready to be written. `state` has layout.floats; empty pieces are left
/// out.
std::vector<SavedPiece> save_state(const StateLayout& layout, int rank, std::string_view bucket,
                                   std::span<const float> state);

enum class Restored : uint8_t {
  nothing,  ///< no piece of this bucket was saved: zeros
  exact,    ///< this rank's own floats
  dealt,    ///< the sum of all residuals, dealt out anew
};
/// Collective. Fills `state` from the pieces of all ranks; pieces of other buckets, and tensors
/// that are no compression state, are passed over. All ranks see the same saved state and get the
/// same answer. Throws ConfigError, on all ranks, where a piece reaches beyond the bucket of
/// `count` floats: the checkpoint is of another network or bucket size. What `saved` throws on one
/// rank is thrown on all.
Restored restore_state(Communicator& communicator, SavedState& saved, const StateLayout& layout,
                       std::string_view bucket, size_t count, std::span<float> state);

/// gradient += all residuals of this rank, which become 0. For a change to the dense sum: nothing
/// is lost then. gradient: the whole bucket.
void release_residuals(const StateLayout& layout, std::span<float> state,
                       std::span<float> gradient);

}  // namespace tutti::comm
