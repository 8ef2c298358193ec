// The charts of several studies beside each other, made from studies.json's content: speed-up and
// efficiency, parallel to the left and learning to the right, on the same scales.
(() => {
  const { studies } = JSON.parse(document.getElementById('data').textContent);
  const { readable, interval, roundTicks, extent, log } = Figures;
  const named = (row) => row.ranks + (row.parts ? '/' + row.parts : '');
  const used = studies.map((study) => study.rows.filter((row) => row.runs > 0));
  const sizes = [...new Map(used.flat().map((row) => [named(row), row])).values()].sort((a, b) => a.ranks - b.ranks || a.parts.localeCompare(b.parts));
  if (!sizes.length) return;
  const places = Places.of(sizes), names = sizes.map(named);
  const at = (row) => places[names.indexOf(named(row))];
  const first = sizes[0].ranks, last = sizes[sizes.length - 1].ranks;
  const most = Math.max(...used.flat().map((row) => row.runs));
  const crowded = used.flat().some((row) => row.oversubscribed);

  const axis = () => ({ type: 'linear', title: { text: 'ranks' }, min: log(first) - 0.25, max: Math.max(...places) + 0.35,
    afterBuildTicks: (scale) => { scale.ticks = places.map((value) => ({ value })); },
    ticks: { autoSkip: false, callback: (value) => names[places.reduce((best, place, i) => (Math.abs(place - value) < Math.abs(places[best] - value) ? i : best), 0)] } });
  const part = (row, key, map) => ({ value: map(row[key].value, row), low: map(row[key].low_90, row), high: map(row[key].high_90, row), runs: row[key + '_runs'].map((value) => map(value, row)) });
  const lines = (theme, key, own, drawn) => studies.flatMap((study, index) => {
    const colour = theme.sizes[index % theme.sizes.length], dash = Draw.dashes[index % Draw.dashes.length], shape = Draw.shapes[index % Draw.shapes.length];
    return Figures.line({ label: study.name, colour, shape, dash, shift: 4 * (index - (studies.length - 1) / 2) }, used[index].map((row) => ({ x: at(row), row, is: part(row, key, own) })), drawn);
  });
  const tooltip = (unit) => ({ filter: (item) => Boolean(item.raw.row), callbacks: { title: (items) => (items.length ? `${named(items[0].raw.row)} ${items[0].raw.row.ranks === 1 ? 'rank' : 'ranks'}` : ''),
    label: ({ raw: { is }, dataset }) => `${dataset.label} ${readable(is.value)}${unit}${interval({ low_90: is.low, high_90: is.high })}` } });

  const kept = (value) => value;
  const share = (value, row) => (value === null ? null : (100 * value) / row.ranks);
  const both = ['parallel_speedup', 'learning_speedup'];
  const speedup = (key) => (theme) => {
    const ideal = { label: 'ideal', showLine: true, borderColor: theme.grey, borderDash: [5, 4], borderWidth: 1.5, pointRadius: 0, order: 3, key: { text: 'ideal', colour: theme.grey, dash: [5, 4], line: true },
      data: [first, last].map((n) => ({ x: log(n), y: log(n) })) };
    const [low, high] = extent([ideal, ...both.flatMap((one) => lines(theme, one, kept, log))]);
    return { type: 'scatter', data: { datasets: [ideal, ...lines(theme, key, kept, log)] },
      options: { scales: { x: axis(), y: { title: { text: 'speed-up' }, min: low - 0.3, max: high + 0.3, afterBuildTicks: roundTicks, ticks: { autoSkip: false, callback: (value) => readable(2 ** value) } } }, plugins: { tooltip: tooltip('') } } };
  };
  const efficiency = (key) => (theme) => {
    const high = extent(both.flatMap((one) => lines(theme, one, share, kept)))[1];
    return { type: 'scatter', data: { datasets: lines(theme, key, share, kept), rules: [{ y: 100, key: { text: 'ideal', colour: theme.grey, dash: [5, 4], line: true } }] },
      options: { scales: { x: axis(), y: { title: { text: 'speed-up ÷ ranks, %' }, min: 0, max: Math.ceil(Math.max(110, high * 1.1) / 10) * 10 } }, plugins: { tooltip: tooltip(' %') } } };
  };

  const chance = (most > 1 ? ' Small dots are single runs; bars are 90\u00a0% intervals.' : ' There is one run of each size, so nothing says how much is chance.') + (crowded ? ' Some sizes had more threads than cores: see the table.' : '');
  const missed = studies.flatMap((study, index) => used[index].filter((row) => study.target && row.learning_speedup.value === null).map((row) => `${study.name} on ${named(row)}`));
  const without = studies.filter((study) => !study.target).map((study) => study.name);
  const gaps = (missed.length ? ` No value: ${missed.join(', ')}.` : '') + (without.length ? ` Without a target: ${without.join(', ')}.` : '');
  const charts = [
    { id: 'parallel', title: 'How much faster an epoch runs: parallel speed-up', build: speedup('parallel_speedup'), hint: 'Both axes are logarithmic, as in the chart beside it.' + chance },
    { id: 'learning', title: 'How much sooner the target is reached: learning speed-up', build: speedup('learning_speedup'), hint: 'Each study has its own target, see above.' + gaps + chance },
    { id: 'parallel-efficiency', title: 'Parallel efficiency', build: efficiency('parallel_speedup'), hint: 'Parallel speed-up divided by ranks.' },
    { id: 'learning-efficiency', title: 'Learning efficiency', build: efficiency('learning_speedup'), hint: 'Learning speed-up divided by ranks: what is left for a result of the same quality.' + gaps },
  ];
  Figures.show(charts, (chart) => `${chart.title}. ${studies.map((study) => `${study.name}: ${study.workload}`).join('; ')}. ${chart.hint}`);
})();
