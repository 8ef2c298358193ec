#include "tutti/cli/peers/native_mpi.h"

#include <climits>
#include <optional>

#include "tutti/comm/transport/mpi/mpi_call.h"

namespace tutti::cli {
namespace {

std::optional<MPI_Datatype> mpi_type_of(comm::Element element, bool moved_only) {
  switch (element) {
    case comm::Element::f32: return MPI_FLOAT;
    case comm::Element::f64: return MPI_DOUBLE;
    case comm::Element::i8: return MPI_INT8_T;
    case comm::Element::i32: return MPI_INT32_T;
    case comm::Element::byte: return MPI_BYTE;
    case comm::Element::i64: return MPI_INT64_T;
    case comm::Element::u8: return MPI_UINT8_T;
    case comm::Element::bf16:
    case comm::Element::f16: break;
  }
  // A 16-bit type serves collectives that only move data.
  return moved_only ? std::optional(MPI_INT16_T) : std::nullopt;
}

std::optional<MPI_Op> op_of(comm::ReduceOp op) {
  switch (op) {
    case comm::ReduceOp::sum: return MPI_SUM;
    case comm::ReduceOp::min: return MPI_MIN;
    case comm::ReduceOp::max: return MPI_MAX;
    case comm::ReduceOp::product: return MPI_PROD;
    case comm::ReduceOp::mean: break;
  }
  return std::nullopt;
}

}  // namespace

std::function<void()> native_collective(const comm::Task& task, comm::Element element,
                                        comm::ReduceOp op, const void* in, void* out) {
  const auto type = mpi_type_of(element, !comm::reduces(task.kind));
  const auto with = op_of(op);
  if (!type || (comm::reduces(task.kind) && !with) || task.count > INT_MAX) return {};
  const int count = static_cast<int>(task.count);
  const int part = count / task.ranks;
  const int root = task.root;
  const MPI_Datatype t = *type;
  const MPI_Op o = with.value_or(MPI_SUM);
  const MPI_Comm world = MPI_COMM_WORLD;
  switch (task.kind) {
    case comm::Collective::barrier: return [=] { MPI_CALL(MPI_Barrier(world)); };
    case comm::Collective::broadcast:
      return [=] { MPI_CALL(MPI_Bcast(out, count, t, root, world)); };
    case comm::Collective::reduce:
      return [=] { MPI_CALL(MPI_Reduce(in, out, count, t, o, root, world)); };
    case comm::Collective::allreduce:
      return [=] { MPI_CALL(MPI_Allreduce(in, out, count, t, o, world)); };
    case comm::Collective::reduce_scatter:
      return [=] { MPI_CALL(MPI_Reduce_scatter_block(in, out, part, t, o, world)); };
    case comm::Collective::allgather:
      return [=] { MPI_CALL(MPI_Allgather(in, part, t, out, part, t, world)); };
    case comm::Collective::gather:
      return [=] { MPI_CALL(MPI_Gather(in, part, t, out, part, t, root, world)); };
    case comm::Collective::scatter:
      return [=] { MPI_CALL(MPI_Scatter(in, part, t, out, part, t, root, world)); };
    case comm::Collective::all_to_all:
      return [=] { MPI_CALL(MPI_Alltoall(in, part, t, out, part, t, world)); };
  }
  return {};
}

}  // namespace tutti::cli
