// Where the sizes of a study stand on its axis of ranks, which counts in powers of two: 2 ranks are
// at 1, 4 are at 2. Sizes of as many ranks, which share their samples in other ways, stand beside
// each other, the one without parts at the number itself, and all before the next number.
const Places = {
  // The place of each row, in their order; rows have `ranks` and `parts` ("", "2", "2x2").
  of(rows) {
    const numbers = [...new Set(rows.map((row) => row.ranks))].sort((a, b) => a - b);
    const sharing = (ranks) => rows.filter((row) => row.ranks === ranks && row.parts);
    return rows.map((row) => {
      const here = Math.log2(row.ranks);
      if (!row.parts) return here;
      const next = numbers[numbers.indexOf(row.ranks) + 1], others = sharing(row.ranks);
      const room = next === undefined ? 1 : Math.log2(next) - here;
      return here + (others.indexOf(row) + 1) * Math.min(0.25, room / (others.length + 1));
    });
  },
};
