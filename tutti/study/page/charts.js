// Which charts the page has, made from study.json's content and nothing else.
(() => {
  const study = JSON.parse(document.getElementById('data').textContent);
  const { readable, interval, roundTicks, extent, log } = Figures;
  const rows = study.rows.filter((row) => row.runs > 0);
  const runs = study.runs.filter((run) => run.usable);
  const n0 = study.base_ranks;
  const ranks = rows.map((row) => row.ranks);
  const crowded = rows.some((row) => row.oversubscribed);
  const most = Math.max(0, ...rows.map((row) => row.runs));

  const ranksWords = (row) => `${row.ranks} ${row.ranks === 1 ? 'rank' : 'ranks'}` + (row.parts ? `, ${row.parts} a sample` : '');
  const places = Places.of(rows);
  const at = (row) => places[rows.indexOf(row)];
  const same = (run, row) => run.ranks === row.ranks && run.parts === row.parts;
  const named = (row) => String(row.ranks) + (row.parts ? '/' + row.parts : '') + (row.oversubscribed ? '*' : '');
  const runsWords = () => {
    const counts = [...new Set(rows.map((row) => row.runs))];
    return counts.length === 1 ? `${counts[0]} ${counts[0] === 1 ? 'run' : 'runs'} for each number of ranks` : `${Math.min(...counts)} to ${most} runs for each number of ranks`;
  };
  const targetWords = study.target ? `${study.metric_words} ${study.target.higher_is_better ? '≥' : '≤'} ${study.target.value}` : '';
  const marks = () => rows.filter((row) => row.reached === 0 && row.runs > 0 && row.cut_off === 0).map((row) => ({ x: at(row), text: 'target not reached' }));

  const ranksAxis = () => ({ type: 'linear', title: { text: 'ranks' + (crowded ? ' (* more threads than cores)' : '') }, min: log(ranks[0]) - 0.25, max: Math.max(...rows.map(at)) + 0.35,
    afterBuildTicks: (scale) => { scale.ticks = rows.map((row) => ({ value: at(row) })); },
    ticks: { autoSkip: false, callback: (value) => named(rows.reduce((a, b) => (Math.abs(at(b) - value) < Math.abs(at(a) - value) ? b : a))) } });

  // One quantity per size. `of(row)` is {value, low, high, runs}.
  const line = (label, colour, shape, dash, of, map, shift) => Figures.line({ label, colour, shape, dash, shift }, rows.map((row) => ({ x: at(row), row, is: of(row) })), map);
  const tooltip = (text) => ({ filter: (item) => Boolean(item.raw.row), callbacks: { title: (items) => (items.length ? ranksWords(items[0].raw.row) : ''), label: text } });
  const niceCeil = (value) => { const unit = 10 ** Math.floor(Math.log10(value)); return unit * [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((step) => step * unit >= value * (1 - 1e-9)); };
  const ratio = (key) => (row) => ({ value: row[key].value, low: row[key].low_90, high: row[key].high_90, runs: row[key + '_runs'] || [] });
  const dots = () => (most > 1 ? ' Small dots are single runs; bars are 90\u00a0% intervals, and an arrow says that one goes on beyond the plot.' : ' There is one run of each size, so nothing says how much is chance.');

  function speedup(theme) {
    const datasets = [
      { label: 'ideal', showLine: true, borderColor: theme.grey, borderDash: [5, 4], borderWidth: 1.5, pointRadius: 0, order: 3, key: { text: 'ideal', colour: theme.grey, dash: [5, 4], line: true },
        data: [{ x: log(n0), y: log(n0) }, { x: log(ranks[ranks.length - 1]), y: log(ranks[ranks.length - 1]) }] },
      ...line('parallel speed-up', theme.parallel, 'circle', [], ratio('parallel_speedup'), log, -3),
      ...(study.target ? line('learning speed-up', theme.learning, 'rect', [7, 3], ratio('learning_speedup'), log, 3) : []),
    ];
    const [low, high] = extent(datasets);
    return { type: 'scatter', data: { datasets, marks: study.target ? marks() : [] },
      options: { scales: { x: ranksAxis(), y: { title: { text: 'speed-up' }, min: low - 0.5, max: high + 0.4, afterBuildTicks: roundTicks, ticks: { autoSkip: false, callback: (value) => readable(2 ** value) } } },
        plugins: { tooltip: tooltip(({ raw: { is }, dataset }) => `${dataset.label} ${readable(is.value)}${interval({ low_90: is.low, high_90: is.high })}`) } } };
  }

  function efficiency(theme) {
    const share = (key) => (row) => { const r = ratio(key)(row); const part = (value) => (value === null ? null : (100 * value) / row.ranks); return { value: part(r.value), low: part(r.low), high: part(r.high), runs: r.runs.map(part) }; };
    const own = (value) => value;
    const datasets = [...line('parallel efficiency', theme.parallel, 'circle', [], share('parallel_speedup'), own, -3),
      ...(study.target ? line('learning efficiency', theme.learning, 'rect', [7, 3], share('learning_speedup'), own, 3) : [])];
    return { type: 'scatter', data: { datasets, marks: study.target ? marks() : [], rules: [{ y: 100, key: { text: 'ideal', colour: theme.grey, dash: [5, 4], line: true } }] },
      options: { scales: { x: ranksAxis(), y: { title: { text: 'speed-up ÷ ranks, %' }, min: 0, max: Math.ceil(Math.max(110, extent(datasets)[1] * 1.1) / 10) * 10 } },
        plugins: { tooltip: tooltip(({ raw: { is }, dataset }) => `${dataset.label} ${readable(is.value)} %${interval({ low_90: is.low, high_90: is.high })}`) } } };
  }

  const timeUnit = (seconds) => (seconds > 7200 ? [3600, 'hours'] : seconds > 240 ? [60, 'minutes'] : [1, 'seconds']);
  // A mean over repeats with the symmetric interval of a mean.
  const mean = (key, single, unit) => (row) => {
    const s = row[key], half = s.half_width_90;
    return { value: s.mean === null ? null : s.mean / unit, low: half === null ? null : Math.max(0, s.mean - half) / unit, high: half === null ? null : (s.mean + half) / unit,
      runs: runs.filter((run) => same(run, row) && run[single] !== null).map((run) => run[single] / unit) };
  };
  function toTarget(key, single, name, unitOf, ideal) {
    if (!study.target || !rows.some((row) => row[key].mean !== null)) return null;
    return (theme) => {
      const [unit, unitName] = unitOf(Math.max(...rows.map((row) => row[key].mean || 0)));
      const datasets = line(name, theme.learning, 'rect', [], mean(key, single, unit), (value) => value, 0);
      const base = rows.find((row) => row.ranks === n0)[key].mean;
      if (base !== null) datasets.push({ label: 'ideal', showLine: true, borderColor: theme.grey, borderDash: [5, 4], borderWidth: 1.5, pointRadius: 0, order: 3, key: { text: 'ideal', colour: theme.grey, dash: [5, 4], line: true },
        data: ranks.map((n) => ({ x: log(n), y: ideal(base / unit, n) })) });
      return { type: 'scatter', data: { datasets, marks: marks() }, options: { scales: { x: ranksAxis(), y: { title: { text: `${name}, ${unitName}` }, min: 0, max: niceCeil(extent(datasets)[1] * 1.12) } },
        plugins: { tooltip: tooltip(({ raw: { is }, dataset }) => `${dataset.label} ${readable(is.value)}${is.low === null ? '' : ` ± ${readable((is.high - is.value))}`} ${unitName}`) } } };
    };
  }

  // Curves: a bold median over repeats with a band from the smallest to the largest, and thin single runs.
  function curves(theme, xKey, runPoints, rowPoints, band) {
    return rows.flatMap((row, index) => {
      const colour = theme.sizes[index % theme.sizes.length], dash = Draw.dashes[index % Draw.dashes.length], shape = Draw.shapes[index % Draw.shapes.length];
      const mine = runs.filter((run) => same(run, row)).map(runPoints).filter((points) => points.length);
      const middle = rowPoints(row).filter((p) => p.y !== null && p.x !== null);
      if (!mine.length) return [];
      const bold = { label: ranksWords(row), showLine: true, borderColor: colour, backgroundColor: colour, borderDash: dash, borderWidth: 2.5, pointStyle: shape, pointRadius: middle.length > 30 ? 0 : 3, order: 1,
        data: middle.map((p) => ({ x: p.x, y: p.y })), band: band && mine.length > 1 ? middle.map((p) => ({ x: p.x, low: p.low, high: p.high })) : [],
        key: { text: ranksWords(row) + (row.oversubscribed ? '*' : ''), colour, dash, shape, line: true } };
      const thin = mine.length < 2 ? [] : mine.map((data) => ({ label: ranksWords(row) + ', one run', showLine: true, borderColor: colour + '70', borderWidth: 1, pointRadius: 0, order: 2, data }));
      return [bold, ...thin];
    });
  }
  const curveTip = (xWords) => ({ callbacks: { title: () => '', label: (item) => `${item.dataset.label}: ${readable(item.raw.y)} at ${readable(item.raw.x)} ${xWords}` } });
  function quality(xKey, title) {
    if (!runs.some((run) => run.evals.some((e) => e.value !== null))) return null;
    return (theme) => {
      const wall = xKey === 'wall_seconds';
      const last = Math.max(...runs.flatMap((run) => run.evals.map((e) => e[xKey])));
      const [unit, unitName] = wall ? timeUnit(last) : [1, 'epochs'];
      const datasets = curves(theme, xKey, (run) => run.evals.filter((e) => e.value !== null && (!wall || e.epoch > 0)).map((e) => ({ x: e[xKey] / unit, y: e.value })),
        (row) => row.curve.filter((p) => !wall || p.epoch > 0).map((p) => ({ x: p[xKey] / unit, y: p.median, low: p.min, high: p.max })), true);
      const share = study.metric === 'accuracy';
      return { type: 'scatter', data: { datasets, rules: study.target ? [{ y: study.target.value, key: { text: `target ${study.target.value}`, colour: theme.ink, dash: [3, 3], line: true } }] : [] },
        options: { scales: { x: { title: { text: wall ? `${unitName} ${title}` : title }, min: 0, suggestedMax: last / unit, ticks: wall ? {} : { precision: 0 } }, y: share ? { title: { text: study.metric_words }, min: 0, max: 1, ticks: { stepSize: 0.1 } } : { title: { text: study.metric_words } } },
          plugins: { tooltip: curveTip(unitName) } } };
    };
  }
  function loss() {
    if (!runs.some((run) => run.epochs.some((e) => e.train_loss !== null))) return null;
    return (theme) => {
      const datasets = curves(theme, 'epoch', (run) => run.epochs.filter((e) => e.train_loss !== null).map((e) => ({ x: e.epoch, y: e.train_loss })),
        (row) => row.training_loss.map((p) => ({ x: p.epoch, y: p.median, low: p.min, high: p.max })), true);
      const [low, high] = extent(datasets), wide = low > 0 && high > 20 * low;
      return { type: 'scatter', data: { datasets }, options: { scales: { x: { title: { text: 'epoch' }, min: 0, ticks: { precision: 0 } }, y: { type: wide ? 'logarithmic' : 'linear', ...(wide ? {} : { min: 0 }), title: { text: 'training loss' + (wide ? ', logarithmic' : '') } } }, plugins: { tooltip: curveTip('epochs') } } };
    };
  }

  const views = { rest: 'all but compute', time: 'whole step, ms', share: 'whole step, %' };
  const stepRows = rows.filter((row) => row.step.total_ms !== null);
  const computeShare = Math.min(1, ...stepRows.map((row) => row.step.compute_ms / row.step.total_ms));
  let stepView = computeShare > 0.7 ? 'rest' : 'time';
  function step(theme) {
    const part = (label, key, index) => ({ label, backgroundColor: theme.parts[index], borderColor: theme.paper, borderWidth: 1, maxBarThickness: 44, key: { text: label, colour: theme.parts[index], box: true },
      data: stepRows.map((row) => (stepView === 'share' ? (100 * row.step[key]) / row.step.total_ms : row.step[key])) });
    const all = [part('compute', 'compute_ms', 0), part('exposed communication', 'comm_exposed_ms', 1), part('waiting for data', 'data_wait_ms', 2), part('other', 'other_ms', 3)];
    return { type: 'bar', data: { bare: true, labels: stepRows.map((row) => ranksWords(row) + (row.oversubscribed ? '*' : '')), datasets: stepView === 'rest' ? all.slice(1) : all },
      options: { indexAxis: 'y', scales: { y: { stacked: true, grid: { display: false } }, x: { stacked: true, title: { text: stepView === 'share' ? '% of a step' : stepView === 'rest' ? 'ms of a step that are not compute' : 'ms of a step' }, ...(stepView === 'share' ? { max: 100 } : {}) } },
        plugins: { tooltip: { callbacks: { label: (item) => { const s = stepRows[item.dataIndex].step; const ms = stepView === 'share' ? (item.raw * s.total_ms) / 100 : item.raw; return `${item.dataset.label}: ${readable(ms)} ms, ${readable((100 * ms) / s.total_ms)} % of the step`; } } } } } };
  }

  const setting = `${study.workload}; ${study.mode === 'weak' ? 'weak scaling, ' + readable(rows.length ? rows[0].local_batch : 0) + ' samples a rank' : study.mode === 'strong' ? 'strong scaling, ' + readable(rows.length ? rows[0].global_batch : 0) + ' samples in all' : study.mode}; ${runsWords()}`;
  const medianWords = most > 1 ? ' Thick lines are medians over repeats, as far as all repeats go; bands reach from the lowest to the highest; thin lines are single runs.' : '';
  const unit = study.replayed ? 'device' : 'core';
  const charts = !rows.length ? [] : [
    { id: 'speedup', title: 'How much faster: speed-up', build: speedup, hint: 'Both axes are logarithmic. Parallel: how much faster an epoch runs. Learning: how much sooner the target is reached.' + dots() },
    { id: 'efficiency', title: 'How well the ranks are used: efficiency', build: efficiency, hint: 'Speed-up divided by ranks; 100 % means that nothing is lost.' + dots() },
    { id: 'target-time', title: 'Time to target', build: toTarget('target_seconds', 'target_seconds', 'time to target', timeUnit, (base, n) => (base * n0) / n), hint: `From the first weight update until ${targetWords}; ${study.replayed ? 'virtual time, without evaluations' : 'evaluations count'}.` + dots() },
    { id: 'target-cost', title: 'Cost of reaching the target', build: toTarget('target_core_seconds', 'target_core_seconds', `${unit} time to target`, (s) => (s > 600 ? [3600, `${unit}-hours`] : [1, `${unit}-seconds`]), (base) => base), hint: (study.replayed ? 'Virtual time to target × replicas: devices of the replayed machine, evaluations left out.' : 'Time to target × ranks × threads of a rank: what a computing centre charges.') + ' Ideal scaling costs the same at every size.' },
    { id: 'wall', title: `${study.metric_words} over time`, build: quality('wall_seconds', study.replayed ? 'of virtual time since the first weight update, without evaluations' : 'since the first weight update, evaluations included'), hint: medianWords.trim() },
    { id: 'epochs', title: `${study.metric_words} over epochs`, build: quality('epoch', 'epochs'), hint: 'If a larger size needs more epochs, its curve lies lower here.' + medianWords },
    { id: 'loss', title: 'Training loss over epochs', build: loss(), hint: 'If the training loss is small and the test accuracy is not, more epochs will not help: more data or augmentation may.' },
    { id: 'step', title: 'Where the time of a step goes', build: stepRows.length ? step : null, hint: 'Exposed communication is what computation did not hide.', views, view: stepView, choose: (view) => { stepView = view; } },
  ].filter((chart) => chart.build).map((chart) => ({ ...chart, title: chart.title[0].toUpperCase() + chart.title.slice(1) }));

  const caption = (chart) => `${chart.title}. ${setting}.${study.target ? ` Target: ${targetWords}.` : ''} ${chart.hint || ''}${crowded ? ' * more threads than cores.' : ''}`.trim();
  Figures.show(charts, caption);
})();
