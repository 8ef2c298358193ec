#pragma once
// Converts tensors for libtutticomm, and checks that it can use them.

#include <torch/csrc/distributed/c10d/Types.hpp>

#include <vector>

#include "work.h"

namespace tutti_torch {

inline size_t bytes_of(const at::Tensor& x) { return static_cast<size_t>(x.nbytes()); }
inline size_t count_of(const at::Tensor& x) { return static_cast<size_t>(x.numel()); }

/// Throws unless x is a dense tensor in main memory. `call` is the call's name, for the message.
void check_tensor(const char* call, const at::Tensor& x);
void check_tensors(const char* call, const std::vector<at::Tensor>& tensors);
/// Returns the only tensor of a list; throws unless there is one.
at::Tensor& only(const char* call, std::vector<at::Tensor>& tensors);
/// Returns the only list of a list of lists.
std::vector<at::Tensor>& only(const char* call, std::vector<std::vector<at::Tensor>>& lists);
/// Throws unless both lists have equally many tensors.
void check_pairs(const char* call, const std::vector<at::Tensor>& outputs,
                 const std::vector<at::Tensor>& inputs);
/// Throws unless both have the same type.
void check_same_type(const char* call, const at::Tensor& x, const at::Tensor& y);

/// How values are reduced; reduction() throws NotImplementedError if that is impossible.
struct Reduction {
  int type;
  int op;
};
Reduction reduction(const char* call, at::ScalarType type, const c10d::ReduceOp& op);

/// Returns the tensor's values one after another, for `work` to read: the tensor itself, or a copy.
at::Tensor read_by(TuttiWork& work, const at::Tensor& x);
/// Does the same for reading and writing.
at::Tensor updated_by(TuttiWork& work, const at::Tensor& x);
/// Does the same for writing only.
at::Tensor written_by(TuttiWork& work, const at::Tensor& x);
/// Return the values of tensors one after another, or memory for them that is copied to the tensors
/// afterwards. Copies nothing if the tensors already lie so.
at::Tensor read_by(TuttiWork& work, const std::vector<at::Tensor>& tensors);
at::Tensor written_by(TuttiWork& work, const std::vector<at::Tensor>& tensors);
/// Does as read_by, but also copies if they overlap with y.
at::Tensor read_beside(TuttiWork& work, const at::Tensor& x, const at::Tensor& y);
at::Tensor read_beside(TuttiWork& work, const std::vector<at::Tensor>& x, const at::Tensor& y);

}  // namespace tutti_torch
