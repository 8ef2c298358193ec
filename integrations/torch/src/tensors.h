#pragma once
// What of a tensor libtutticomm needs, and what it cannot take.

#include <torch/csrc/distributed/c10d/Types.hpp>

#include <vector>

#include "work.h"

namespace tutti_torch {

inline size_t bytes_of(const at::Tensor& x) { return static_cast<size_t>(x.nbytes()); }
inline size_t count_of(const at::Tensor& x) { return static_cast<size_t>(x.numel()); }

/// Throws unless it is a dense tensor in main memory. call: its name, for the message.
void check_tensor(const char* call, const at::Tensor& x);
void check_tensors(const char* call, const std::vector<at::Tensor>& tensors);
/// The one tensor of a list.
at::Tensor& only(const char* call, std::vector<at::Tensor>& tensors);
/// The one list of a list of lists.
std::vector<at::Tensor>& only(const char* call, std::vector<std::vector<at::Tensor>>& lists);
/// Throws unless there are as many of the one as of the other.
void check_pairs(const char* call, const std::vector<at::Tensor>& outputs,
                 const std::vector<at::Tensor>& inputs);
/// Throws unless both have the same type.
void check_same_type(const char* call, const at::Tensor& x, const at::Tensor& y);

/// How values are reduced; throws NotImplementedError for those that cannot be.
struct Reduction {
  int type;
  int op;
};
Reduction reduction(const char* call, at::ScalarType type, const c10d::ReduceOp& op);

/// The tensor's values one after another, read by `work`: itself, or a copy.
at::Tensor read_by(TuttiWork& work, const at::Tensor& x);
/// The same, read and written.
at::Tensor updated_by(TuttiWork& work, const at::Tensor& x);
/// The same, written only.
at::Tensor written_by(TuttiWork& work, const at::Tensor& x);
/// The values of tensors one after another, or room for them, which is dealt out afterwards. Where
/// they lie so already nothing is copied.
at::Tensor read_by(TuttiWork& work, const std::vector<at::Tensor>& tensors);
at::Tensor written_by(TuttiWork& work, const std::vector<at::Tensor>& tensors);
/// As read_by, and a copy also where they overlap with y.
at::Tensor read_beside(TuttiWork& work, const at::Tensor& x, const at::Tensor& y);
at::Tensor read_beside(TuttiWork& work, const std::vector<at::Tensor>& x, const at::Tensor& y);

}  // namespace tutti_torch
