#include "tutti/comm/mpi/native.h"

#include <climits>
#include <optional>

#include "tutti/comm/mpi/mpi_call.h"

namespace tutti::comm {
namespace {

std::optional<MPI_Datatype> type_of(Element element, bool moved_only) {
  switch (element) {
    case Element::f32: return MPI_FLOAT;
    case Element::f64: return MPI_DOUBLE;
    case Element::i8: return MPI_INT8_T;
    case Element::i32: return MPI_INT32_T;
    case Element::byte: return MPI_BYTE;
    case Element::i64: return MPI_INT64_T;
    case Element::u8: return MPI_UINT8_T;
    case Element::bf16:
    case Element::f16: break;
  }
  // Two bytes that nobody adds.
  return moved_only ? std::optional(MPI_INT16_T) : std::nullopt;
}

std::optional<MPI_Op> op_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return MPI_SUM;
    case ReduceOp::min: return MPI_MIN;
    case ReduceOp::max: return MPI_MAX;
    case ReduceOp::product: return MPI_PROD;
    case ReduceOp::mean: break;
  }
  return std::nullopt;
}

}  // namespace

std::function<void()> native_collective(const Task& task, Element element, ReduceOp op,
                                        const void* in, void* out) {
  const auto type = type_of(element, !reduces(task.kind));
  const auto with = op_of(op);
  if (!type || (reduces(task.kind) && !with) || task.count > INT_MAX) return {};
  const int count = static_cast<int>(task.count);
  const int part = count / task.ranks;
  const int root = task.root;
  const MPI_Datatype t = *type;
  const MPI_Op o = with.value_or(MPI_SUM);
  const MPI_Comm world = MPI_COMM_WORLD;
  switch (task.kind) {
    case Collective::barrier: return [=] { MPI_CALL(MPI_Barrier(world)); };
    case Collective::broadcast: return [=] { MPI_CALL(MPI_Bcast(out, count, t, root, world)); };
    case Collective::reduce:
      return [=] { MPI_CALL(MPI_Reduce(in, out, count, t, o, root, world)); };
    case Collective::allreduce:
      return [=] { MPI_CALL(MPI_Allreduce(in, out, count, t, o, world)); };
    case Collective::reduce_scatter:
      return [=] { MPI_CALL(MPI_Reduce_scatter_block(in, out, part, t, o, world)); };
    case Collective::allgather:
      return [=] { MPI_CALL(MPI_Allgather(in, part, t, out, part, t, world)); };
    case Collective::gather:
      return [=] { MPI_CALL(MPI_Gather(in, part, t, out, part, t, root, world)); };
    case Collective::scatter:
      return [=] { MPI_CALL(MPI_Scatter(in, part, t, out, part, t, root, world)); };
    case Collective::all_to_all:
      return [=] { MPI_CALL(MPI_Alltoall(in, part, t, out, part, t, world)); };
  }
  return {};
}

}  // namespace tutti::comm
