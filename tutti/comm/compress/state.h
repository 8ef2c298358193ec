#pragma once
// The state that a compressed reduction keeps from step to step on each rank, and that belongs in
// a checkpoint: pieces of one float array, by name.
//
//   gradient   the part of this rank's gradient that was not sent yet: all of the bucket (of its
//              slice, for hitopk: `sum`)
//   sum        the part that was not sent yet of a sum that this rank encodes again: a slice of the
//              bucket
//   basis      PowerSGD's Q, the same on all ranks
//
// A piece is saved as a tensor "compression.rank3.bucket 2.sum@1024": rank, bucket, kind and
// beginning in the bucket; its length is the tensor's. So a checkpoint describes its own contents,
// and any number of ranks can resume from it:
//   the same pieces   every rank gets its own floats back: the resumed run has the same bits
//   other pieces      (another number of ranks or nodes, another method) only the sum of all
//                     residuals matters, which is the part of the gradient that the weights have
//                     not seen. It is dealt out evenly: every element equally to all ranks that
//                     keep one for it. Nothing is lost but the last bit; the run goes on otherwise
//                     than the old one would have, and the caller reports this in the log. Q is
//                     taken from any rank where it fits, and begun anew otherwise.
//
// With S floats a rank, P ranks that saved and P' that restore: the same pieces are read by their
// owner alone, S a rank. Otherwise rank p reads the pieces of the ranks p, p + P', ... one after
// another, adds them up, and an allreduce adds the rest: S P/P' are read, 2 S travel, and one piece
// and the sum of one bucket are held. Nothing is read, sent or held P times.

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
  Slice covers;     ///< elements of the bucket, in floats; basis: from 0, its own length
  int holders = 1;  ///< ranks that keep a piece of this kind for these elements
  size_t at = 0;    ///< its beginning in the state
};

/// The pieces lie one after another.
struct StateLayout {
  std::vector<StatePiece> pieces;
  size_t floats = 0;
  /// Appends a piece, empty ones too.
  void add(StatePiece::Kind kind, Slice covers, int holders);
};

/// One piece as it is saved. The memory belongs to the object that made it.
struct SavedPiece {
  std::string name;
  std::span<const float> values;
};

/// Gives access to the state that all ranks have saved. Not thread-safe.
class SavedState {
 public:
  virtual ~SavedState() = default;
  virtual int ranks() const = 0;  ///< number of ranks that saved
  /// Returns the names of one rank's tensors, also of those that are no compression state.
  virtual std::vector<std::string> names(int rank) = 0;
  virtual size_t floats(int rank, const std::string& name) = 0;
  virtual std::vector<float> read(int rank, const std::string& name) = 0;
};

/// Returns "compression.rank3.bucket 2.sum@1024".
std::string piece_name(int rank, std::string_view bucket, const StatePiece& piece);
/// Returns whether a saved tensor of this name is a piece, of any rank and bucket.
bool is_piece(std::string_view name);
/// Returns a rank's state, layout.floats of them, by piece, ready to be written, without empty
/// ones.
std::vector<SavedPiece> save_state(const StateLayout& layout, int rank, std::string_view bucket,
                                   std::span<const float> state);

enum class Restored : uint8_t {
  nothing,  ///< no piece of this bucket was saved: zeros
  exact,    ///< this rank's own floats
  dealt,    ///< the sum of all residuals, dealt out anew
};
/// Fills `state` from the pieces of all ranks; skips pieces of other buckets, and tensors that are
/// no compression state. Collective. All ranks see the same saved state and get the same answer.
/// Throws ConfigError, on all ranks, where a piece reaches beyond the bucket of `count` floats: the
/// checkpoint is of another network or bucket size. An error of `saved` on one rank is thrown on
/// all.
Restored restore_state(Communicator& communicator, SavedState& saved, const StateLayout& layout,
                       std::string_view bucket, size_t count, std::span<float> state);

/// Adds all residuals of this rank to `gradient`, the whole bucket, and sets them to 0. For a
/// change to the dense sum: nothing is lost then.
void release_residuals(const StateLayout& layout, std::span<float> state,
                       std::span<float> gradient);

}  // namespace tutti::comm
