// What the pages of one study and of several have in common: numbers, lines with their intervals,
// and a chart as a figure that can be saved.
const Figures = (() => {
  const log = Math.log2;
  const readable = (value) => (value === null || !Number.isFinite(value) ? '-' : Math.abs(value) >= 1000 ? Math.round(value).toLocaleString('en') : String(Number(value.toPrecision(3))));
  const interval = (r) => (r.low_90 === null ? '' : ` [${readable(r.low_90)}, ${readable(r.high_90)}]`);
  const extent = (datasets) => { const values = datasets.flatMap((set) => (set.data || []).map((point) => point.y)).filter(Number.isFinite); return [Math.min(...values), Math.max(...values)]; };

  // Round numbers in [low, high] on a logarithmic axis, given and wanted as logarithms.
  const roundTicks = (scale) => {
    const span = scale.max - scale.min;
    const steps = span < 1.5 ? [1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8] : span < 4 ? [1, 1.25, 1.5] : [1];
    const ticks = [];
    for (let power = Math.floor(scale.min); power <= scale.max; ++power)
      for (const step of steps) if (log(step) + power >= scale.min - 1e-9 && log(step) + power <= scale.max + 1e-9) ticks.push({ value: log(step) + power });
    scale.ticks = ticks;
  };

  // A line, intervals and single runs of points {x, row, is: {value, low, high, runs}}.
  function line({ label, colour, shape, dash, shift }, points, map) {
    const here = points.filter(({ is }) => is.value !== null);
    return [
      { label, showLine: true, borderColor: colour, borderDash: dash, borderWidth: 2, pointStyle: shape, pointRadius: 5, pointHoverRadius: 7, pointBorderWidth: 2, order: 1,
        pointBackgroundColor: colour, data: here.map(({ x, row, is }) => ({ x, y: map(is.value), row, is })), shift,
        bars: here.filter(({ is }) => is.low !== null && is.low !== undefined && is.low !== is.high).map(({ x, is }) => ({ x, low: map(is.low), high: map(is.high) })),
        key: { text: label, colour, dash, shape, line: true } },
      { label, borderColor: 'transparent', backgroundColor: colour + '80', pointRadius: 2.5, pointStyle: 'circle', showLine: false, order: 2,
        data: here.filter(({ is }) => is.runs.length > 1).flatMap(({ x, is }) => is.runs.map((value) => ({ x: x + (shift > 0 ? 0.06 : -0.06), y: map(value) }))) },
    ];
  }

  // Draws charts {id, title, hint, build(theme)}, some with `views` {name: text}, the first `view` and
  // `choose(name)`, and draws them again for another theme and for paper.
  function show(charts, caption) {
    const page = document.getElementById('charts'), drawn = new Map();
    const dark = window.matchMedia('(prefers-color-scheme: dark)');
    const element = (tag, text, more) => Object.assign(document.createElement(tag), { textContent: text || '' }, more);
    const redraw = (chart, theme) => { if (drawn.has(chart.id)) drawn.get(chart.id).destroy(); drawn.set(chart.id, Draw.make(document.getElementById('canvas-' + chart.id), chart.build, theme)); };
    const redrawAll = (theme) => charts.forEach((chart) => redraw(chart, theme));
    const own = () => (dark.matches ? 'dark' : 'light');

    function button(text, act) { return element('button', text, { type: 'button', onclick: act }); }
    function mark(bar, chosen) { for (const one of bar.children) one.setAttribute('aria-pressed', String(one === chosen)); }
    function copied(text, area) {
      const done = () => { area.textContent = 'copied'; setTimeout(() => { area.textContent = 'copy caption'; }, 1500); };
      if (navigator.clipboard) return navigator.clipboard.writeText(text).then(done, () => {});
      return undefined;
    }
    for (const chart of charts) {
      const figure = element('figure'), head = element('figcaption', chart.title);
      const plot = element('div', '', { className: 'plot' }), canvas = element('canvas', '', { id: 'canvas-' + chart.id });
      canvas.setAttribute('role', 'img');
      canvas.setAttribute('aria-label', caption(chart));
      plot.append(canvas);
      figure.append(head);
      if (chart.views) {
        const bar = element('div', '', { className: 'views' });
        for (const [view, text] of Object.entries(chart.views)) bar.append(button(text, (event) => { chart.choose(view); mark(bar, event.target); redraw(chart, own()); }));
        mark(bar, bar.children[Object.keys(chart.views).indexOf(chart.view)]);
        figure.append(bar);
      }
      const tools = element('details', '', { className: 'tools' });
      const copy = button('copy caption', () => copied(caption(chart), copy));
      tools.append(element('summary', 'Save this chart'), button('SVG', () => Draw.save(chart.id + '.svg', new Blob([Draw.svg(chart.build, 720, 460)], { type: 'image/svg+xml' }))),
        button('PNG', () => Draw.png(chart.build, 720, 460).toBlob((blob) => Draw.save(chart.id + '.png', blob))), copy, element('p', caption(chart), { className: 'hint' }));
      figure.append(plot, element('p', chart.hint, { className: 'hint' }), tools);
      page.append(figure);
    }

    const hints = () => document.querySelectorAll('.scroll').forEach((box) => { box.previousElementSibling.hidden = box.scrollWidth <= box.clientWidth + 1; });
    hints();
    window.addEventListener('resize', hints);
    redrawAll(own());
    dark.addEventListener('change', () => redrawAll(own()));
    window.addEventListener('beforeprint', () => redrawAll('light'));
    window.addEventListener('afterprint', () => redrawAll(own()));
  }

  return { log, readable, interval, extent, roundTicks, line, show };
})();
