#include "tutti/comm/algorithm/hierarchy.h"

#include "tutti/base/error.h"

namespace tutti::comm {
namespace {

Task along(Collective kind, int rank, int ranks, size_t count) {
  Task task;
  task.kind = kind;
  task.rank = rank;
  task.ranks = ranks;
  task.count = count;
  task.parts = balanced_parts(count, ranks);
  return task;
}

Block shifted(Space space, Slice area, Block block) {
  return {space, {area.begin + block.slice.begin, block.slice.count}};
}

}  // namespace

GridPlace place_in_grid(const Task& task, int columns) {
  CHECK(columns >= 1 && task.ranks % columns == 0, "{} ranks in rows of {}", task.ranks, columns);
  GridPlace at{.row = task.rank / columns,
               .column = task.rank % columns,
               .row_ranks = {},
               .column_ranks = {}};
  for (int c = 0; c < columns; ++c) at.row_ranks.push_back(at.row * columns + c);
  for (int r = at.column; r < task.ranks; r += columns) at.column_ranks.push_back(r);
  return at;
}

Schedule allreduce_in_rows(const Task& task, const GridPlace& at, std::string_view name,
                           const Algorithm& along_row, const Algorithm& along_column) {
  const int columns = static_cast<int>(at.row_ranks.size());
  const int rows = static_cast<int>(at.column_ranks.size());
  ScheduleBuilder builder(task, std::string(name));

  Task scatter = along(Collective::reduce_scatter, at.column, columns, task.count);
  scatter.wide = task.wide;
  const Slice mine = scatter.part();
  const Block piece = task.wide ? accumulator(builder.take_accumulator(mine.count)) : output(mine);
  const Schedule first = along_row.schedule(scatter);
  const Slice first_staging = builder.take_staging(first.staging),
              first_sums = builder.take_accumulator(first.accumulator);
  builder.append(first, at.row_ranks, [&](Block b) {
    switch (b.space) {
      case Space::output: return within(piece, b.slice);
      case Space::staging: return shifted(Space::staging, first_staging, b);
      case Space::accumulator: return shifted(Space::accumulator, first_sums, b);
      case Space::input: break;
    }
    return b;
  });

  // Partial sums travel here: everything is an accumulator.
  const Schedule second =
      along_column.schedule(along(Collective::allreduce, at.row, rows, mine.count));
  const Slice second_staging = builder.take_accumulator(second.staging),
              second_sums = builder.take_accumulator(second.accumulator);
  builder.append(second, at.column_ranks, [&](Block b) {
    switch (b.space) {
      case Space::staging: return shifted(Space::accumulator, second_staging, b);
      case Space::accumulator: return shifted(Space::accumulator, second_sums, b);
      default: return within(piece, b.slice);
    }
  });
  builder.finish(output(mine), piece);

  Task gather = along(Collective::allgather, at.column, columns, task.count);
  gather.shared_output = task.shared_output;
  const Schedule third = along_row.schedule(gather);
  CHECK(third.staging == 0 && third.accumulator == 0);
  builder.append(third, at.row_ranks, [&](Block b) {
    return b.space == Space::input ? within(output(mine), b.slice) : b;
  });
  return builder.build();
}

Steps steps_in_rows(const Task& task, int columns, const Algorithm& along_row,
                    const Algorithm& along_column) {
  const Task scatter = along(Collective::reduce_scatter, 0, columns, task.count);
  const Steps first = along_row.steps(scatter);
  const Steps second = along_column.steps(
      along(Collective::allreduce, 0, task.ranks / columns, scatter.parts.back().count));
  const Steps third = along_row.steps(along(Collective::allgather, 0, columns, task.count));
  // A row of one rank has nothing to tell itself.
  const double in_row = columns == 1 ? 0 : first.rounds + third.rounds;
  return {in_row + second.rounds, first.moved + second.moved + third.moved,
          first.reduced + second.reduced};
}

}  // namespace tutti::comm
