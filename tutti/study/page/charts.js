'use strict';
(() => {
  const study = JSON.parse(document.getElementById('data').textContent);
  // Okabe and Ito's colours, which stay apart for every common kind of colour vision; shape and dash repeat the distinction.
  const colours = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#000000'];
  const shapes = ['circle', 'rect', 'triangle', 'rectRot', 'star', 'crossRot', 'rectRounded'];
  const parallelColour = '#0072b2', learningColour = '#d55e00', grey = '#8a949c';
  const rows = study.rows.filter((row) => row.runs > 0);

  Chart.defaults.font.family = 'system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif';
  Chart.defaults.color = '#3d4a54';
  Chart.defaults.animation = false;
  Chart.defaults.maintainAspectRatio = false;
  Chart.defaults.devicePixelRatio = Math.max(2, window.devicePixelRatio || 1);
  Chart.defaults.plugins.legend.labels.usePointStyle = true;
  Chart.defaults.plugins.legend.labels.boxHeight = 7;

  const hint = (id, text) => { document.getElementById('hint-' + id).textContent = text; };
  const drop = (id) => document.getElementById('box-' + id).remove();
  const draw = (id, config) => new Chart(document.getElementById(id), config);
  const axis = (text, more) => Object.assign({ title: { display: true, text }, grid: { color: '#e8ebed' } }, more);
  const readable = (value) => String(Number(value.toPrecision(3)));

  // A dataset's `bars` [{x, low, high}] as error bars, its `marks` [{x, text}] as upright text above the horizontal axis.
  const annotations = {
    id: 'annotations',
    beforeDatasetsDraw(chart) {
      const { ctx, scales: { x, y }, chartArea } = chart;
      chart.data.datasets.forEach((set, index) => {
        if (!chart.isDatasetVisible(index)) return;
        ctx.save();
        ctx.strokeStyle = ctx.fillStyle = set.borderColor;
        ctx.lineWidth = 1.5;
        for (const bar of set.bars || []) {
          const at = x.getPixelForValue(bar.x), low = y.getPixelForValue(bar.low), high = y.getPixelForValue(bar.high);
          ctx.beginPath();
          ctx.moveTo(at, low); ctx.lineTo(at, high);
          ctx.moveTo(at - 4, low); ctx.lineTo(at + 4, low);
          ctx.moveTo(at - 4, high); ctx.lineTo(at + 4, high);
          ctx.stroke();
        }
        ctx.font = '600 11px ' + Chart.defaults.font.family;
        for (const mark of set.marks || []) {
          ctx.save();
          ctx.translate(Math.min(x.getPixelForValue(mark.x), chartArea.right - 8) + 4, chartArea.bottom - 6);
          ctx.rotate(-Math.PI / 2);
          ctx.fillText(mark.text, 0, 0);
          ctx.restore();
        }
        ctx.restore();
      });
    },
  };

  function speedup() {
    if (rows.length < 1) return drop('speedup');
    const log = Math.log2;
    const ranks = rows.map((row) => row.ranks);
    const n0 = study.base_ranks, last = ranks[ranks.length - 1];
    const line = (label, key, colour, shape, dash) => {
      const here = rows.filter((row) => row[key].value !== null);
      return {
        label, borderColor: colour, borderDash: dash, showLine: true, borderWidth: 2, pointStyle: shape, pointRadius: 5, pointHoverRadius: 7,
        pointBorderWidth: 2,
        pointBackgroundColor: here.map((row) => (row.oversubscribed ? '#ffffff' : colour)),
        data: here.map((row) => ({ x: log(row.ranks), y: log(row[key].value), row, key })),
        bars: here.filter((row) => row[key].low_90 !== null)
          .map((row) => ({ x: log(row.ranks), low: log(row[key].low_90), high: log(row[key].high_90) })),
      };
    };
    const repeats = (key, colour, shift) => ({
      label: 'single runs', borderColor: 'transparent', backgroundColor: colour + '70', pointRadius: 2.5, showLine: false,
      data: rows.flatMap((row) => (row.ranks === n0 && row[key].length < 2 ? [] : row[key].map((value) => ({ x: log(row.ranks) + shift, y: log(value) })))),
    });
    const datasets = [
      { label: 'ideal', borderColor: grey, borderDash: [5, 4], borderWidth: 1.5, showLine: true, pointRadius: 0, pointStyle: 'line',
        data: [{ x: log(n0), y: log(n0) }, { x: log(last), y: log(last) }] },
      line('parallel speed-up', 'parallel_speedup', parallelColour, 'circle', []),
    ];
    if (study.target) {
      const learning = line('learning speed-up', 'learning_speedup', learningColour, 'rect', [7, 3]);
      learning.marks = rows.filter((row) => row.reached === 0).map((row) => ({ x: log(row.ranks), text: 'target not reached' }));
      datasets.push(learning);
    }
    datasets.push(repeats('parallel_speedup_runs', parallelColour, 0.05));
    if (study.target) datasets.push(repeats('learning_speedup_runs', learningColour, -0.05));
    const exactTicks = (scale) => { scale.ticks = ranks.map((n) => ({ value: log(n) })); };
    const power = { callback: (value) => readable(2 ** value) };
    draw('speedup', {
      type: 'scatter', data: { datasets }, plugins: [annotations],
      options: {
        layout: { padding: { right: 10 } },
        scales: {
          x: axis('ranks', { min: log(ranks[0]) - 0.15, max: log(last) + 0.15, afterBuildTicks: exactTicks, ticks: power }),
          y: axis('speed-up', { ticks: { stepSize: 1, ...power }, suggestedMin: log(n0), suggestedMax: log(last) }),
        },
        plugins: {
          legend: { labels: { usePointStyle: true, filter: (item) => item.text !== 'single runs' } },
          tooltip: {
            filter: (item) => Boolean(item.raw.row),
            callbacks: {
              label: ({ raw: { row, key }, dataset }) => {
                const r = row[key];
                const interval = r.low_90 === null ? '' : ` [${readable(r.low_90)}, ${readable(r.high_90)}]`;
                return `${row.ranks} ranks: ${dataset.label} ${readable(r.value)}${interval}, efficiency ${Math.round(100 * r.value / row.ranks)} %`;
              },
            },
          },
        },
      },
    });
    const parts = ['Both axes are logarithmic.', 'Small dots are single runs, bars 90 % intervals.'];
    if (rows.some((row) => row.oversubscribed)) parts.push('Hollow: oversubscribed.');
    hint('speedup', parts.join(' '));
  }

  function step() {
    const here = rows.filter((row) => row.step.total_ms !== null);
    if (!here.length) return drop('step');
    const part = (label, key, colour) => ({ label, backgroundColor: colour, borderColor: '#ffffff', borderWidth: 1, maxBarThickness: 70, pointStyle: 'rect',
      data: here.map((row) => row.step[key]) });
    draw('step', {
      type: 'bar',
      data: {
        labels: here.map((row) => (row.oversubscribed ? row.ranks + '*' : String(row.ranks))),
        datasets: [part('compute', 'compute_ms', '#0072b2'), part('exposed communication', 'comm_exposed_ms', '#d55e00'),
          part('data wait', 'data_wait_ms', '#f0e442'), part('other', 'other_ms', '#b4bbc0')],
      },
      options: {
        scales: { x: axis('ranks', { stacked: true, grid: { display: false } }), y: axis('ms per step', { stacked: true, beginAtZero: true }) },
        plugins: {
          tooltip: { callbacks: { label: (item) => `${item.dataset.label}: ${readable(item.raw)} ms, ${Math.round(100 * item.raw / here[item.dataIndex].step.total_ms)} %` } },
        },
      },
    });
    hint('step', here.some((row) => row.oversubscribed) ? '* oversubscribed: more threads than cores.' : '');
  }

  function curves(id, key, label) {
    const counts = rows.map((row) => row.ranks);
    const runs = study.runs.filter((run) => run.usable && run.evals.some((e) => e.value !== null));
    if (!runs.length) return drop(id);
    const seen = new Set();
    const datasets = runs.map((run) => {
      const index = counts.indexOf(run.ranks), first = !seen.has(run.ranks);
      seen.add(run.ranks);
      const colour = colours[index % colours.length];
      const crowded = rows[index].oversubscribed;
      return {
        label: `${run.ranks} ${run.ranks === 1 ? 'rank' : 'ranks'}${crowded ? '*' : ''}`, first, order: 1, showLine: true, borderColor: first ? colour : colour + '88',
        borderWidth: first ? 2 : 1.2, borderDash: index >= colours.length ? [6, 3] : [], backgroundColor: colour, pointStyle: shapes[index % shapes.length],
        pointRadius: first ? 3 : 1.5, data: run.evals.filter((e) => e.value !== null && (key !== 'wall_seconds' || e.wall_seconds > 0)).map((e) => ({ x: e[key], y: e.value })),
      };
    });
    const points = datasets.flatMap((set) => set.data.map((point) => point.x));
    const ends = datasets.filter((set) => set.data.length).map((set) => set.data[set.data.length - 1].x);
    const wide = key === 'wall_seconds' && Math.max(...ends) > 12 * Math.min(...ends);
    if (study.target)
      datasets.push({ label: `target ${study.target.value}`, first: true, showLine: true, pointRadius: 0, pointStyle: 'line', borderColor: '#3d4a54', borderWidth: 1.5, borderDash: [3, 3],
        data: [Math.min(...points), Math.max(...points)].map((x) => ({ x, y: study.target.value })) });
    draw(id, {
      type: 'scatter', data: { datasets },
      options: {
        scales: { x: axis(label + (wide ? ', logarithmic' : ''), { type: wide ? 'logarithmic' : 'linear' }), y: axis('validation ' + study.metric) },
        plugins: {
          legend: { labels: { usePointStyle: true, filter: (item, data) => data.datasets[item.datasetIndex].first } },
          tooltip: { callbacks: { label: (item) => `${item.dataset.label}: ${readable(item.raw.y)} at ${readable(item.raw.x)}` } },
        },
      },
    });
    const parts = [];
    if (runs.length > seen.size) parts.push('One line per run; the first repeat is the bold one.');
    if (rows.some((row) => row.oversubscribed)) parts.push('* oversubscribed.');
    hint(id, parts.join(' '));
  }

  for (const span of document.querySelectorAll('.metric')) span.textContent = study.metric;
  speedup();
  step();
  curves('wall', 'wall_seconds', 'seconds since the first weight update, evaluation included');
  curves('epochs', 'epoch', 'epochs');
})();
