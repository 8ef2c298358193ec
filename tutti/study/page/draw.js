// How charts look: themes, legends, intervals, bands and lines over the whole width; and a chart as
// a file. What is drawn is in charts.js.
const Draw = (() => {
  // Okabe and Ito's colours, which stay apart for every common kind of colour vision, lightened on a dark page; shape and dash repeat the distinction.
  const themes = {
    light: { ink: '#1b2631', soft: '#3d4a54', grid: '#e3e7ea', paper: '#ffffff', grey: '#6b757c', parallel: '#0072b2', learning: '#d55e00',
      sizes: ['#0072b2', '#b87900', '#009e73', '#b0538a', '#2a8fc7', '#d55e00', '#000000'], parts: ['#0072b2', '#d55e00', '#c9b800', '#98a1a8'] },
    dark: { ink: '#e8edf0', soft: '#b9c4cc', grid: '#313c46', paper: '#171d23', grey: '#93a0aa', parallel: '#56b4e9', learning: '#ff8f4d',
      sizes: ['#56b4e9', '#e69f00', '#2fc79a', '#e29cc4', '#a9d8f7', '#ff8f4d', '#f0f0f0'], parts: ['#56b4e9', '#ff8f4d', '#f0e442', '#7d8891'] },
  };
  const shapes = ['circle', 'rect', 'triangle', 'rectRot', 'star', 'crossRot', 'rectRounded'];
  const dashes = [[], [7, 3], [2, 3], [9, 3, 2, 3]];
  const family = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
  const small = '12px ' + family;
  const rowHeight = 20, keyWidth = 30, gap = 16;

  Chart.defaults.font.family = family;
  Chart.defaults.animation = false;
  Chart.defaults.maintainAspectRatio = false;
  Chart.defaults.plugins.legend.display = false;

  // The legend's rows: each entry is {text, colour, dash, shape, line, box}.
  function legendRows(chart) {
    const entries = chart.config.data.datasets.map((set) => set.key).concat((chart.config.data.rules || []).map((rule) => rule.key)).filter(Boolean);
    const rows = [[]];
    let used = 0;
    chart.ctx.save();
    chart.ctx.font = small;
    for (const entry of entries) {
      const width = keyWidth + chart.ctx.measureText(entry.text).width + gap;
      if (used && used + width > chart.width - 16) { rows.push([]); used = 0; }
      rows[rows.length - 1].push({ entry, x: used });
      used += width;
    }
    chart.ctx.restore();
    return rows;
  }

  function drawLegend(chart, theme) {
    const { ctx } = chart;
    ctx.save();
    ctx.font = small;
    ctx.textBaseline = 'middle';
    ctx.textAlign = 'left';
    legendRows(chart).forEach((row, index) => {
      const y = 10 + index * rowHeight;
      for (const { entry, x } of row) {
        const left = 8 + x;
        ctx.strokeStyle = ctx.fillStyle = entry.colour;
        ctx.lineWidth = 2;
        if (entry.box) ctx.fillRect(left + 8, y - 5, 12, 10);
        if (entry.line) {
          ctx.setLineDash(entry.dash || []);
          ctx.beginPath(); ctx.moveTo(left, y); ctx.lineTo(left + 26, y); ctx.stroke();
          ctx.setLineDash([]);
        }
        if (entry.shape) Chart.helpers.drawPoint(ctx, { pointStyle: entry.shape, radius: 4, borderWidth: 2 }, left + 13, y);
        ctx.fillStyle = theme.soft;
        ctx.fillText(entry.text, left + keyWidth, y);
      }
    });
    ctx.restore();
  }

  // A dataset's `band` [{x, low, high}]: what lies between the smallest and the largest.
  function drawBand(ctx, { x, y }, set) {
    const points = (set.band || []).filter((p) => p.low !== null && p.high !== null);
    if (points.length < 2) return;
    ctx.globalAlpha = 0.16;
    ctx.fillStyle = set.borderColor;
    ctx.beginPath();
    points.forEach((p, i) => (i ? ctx.lineTo(x.getPixelForValue(p.x), y.getPixelForValue(p.high)) : ctx.moveTo(x.getPixelForValue(p.x), y.getPixelForValue(p.high))));
    [...points].reverse().forEach((p) => ctx.lineTo(x.getPixelForValue(p.x), y.getPixelForValue(p.low)));
    ctx.closePath();
    ctx.fill();
    ctx.globalAlpha = 1;
  }

  // A dataset's `bars` [{x, low, high}]: intervals with caps; an end that lies outside the plot is an arrow at its edge.
  function drawBars(ctx, { x, y }, area, set) {
    ctx.strokeStyle = ctx.fillStyle = set.borderColor;
    ctx.lineWidth = 1.5;
    ctx.setLineDash([]);
    for (const bar of set.bars || []) {
      const at = x.getPixelForValue(bar.x) + (set.shift || 0);
      const ends = [y.getPixelForValue(bar.low), y.getPixelForValue(bar.high)];
      const [low, high] = ends.map((end) => Math.min(area.bottom - 1, Math.max(area.top + 1, Number.isFinite(end) ? end : area.bottom - 1)));
      ctx.beginPath(); ctx.moveTo(at, low); ctx.lineTo(at, high); ctx.stroke();
      [[ends[0], low, -6], [ends[1], high, 6]].forEach(([end, drawn, away]) => {
        ctx.beginPath();
        if (Math.abs(end - drawn) < 1) { ctx.moveTo(at - 5, drawn); ctx.lineTo(at + 5, drawn); ctx.stroke(); return; }
        ctx.moveTo(at, drawn); ctx.lineTo(at - 4, drawn + away); ctx.lineTo(at + 4, drawn + away); ctx.closePath(); ctx.fill();
      });
    }
  }

  const annotations = {
    id: 'annotations',
    beforeDatasetsDraw(chart) {
      const { ctx, scales, chartArea: area } = chart;
      const theme = themes[chart.config.data.theme];
      if (!chart.config.data.bare) {
        ctx.save();
        ctx.beginPath(); ctx.rect(area.left, area.top, area.right - area.left, area.bottom - area.top); ctx.clip();
        for (const rule of chart.config.data.rules || []) {
          const y = scales.y.getPixelForValue(rule.y);
          ctx.strokeStyle = rule.key.colour; ctx.lineWidth = 1.5; ctx.setLineDash(rule.key.dash);
          ctx.beginPath(); ctx.moveTo(area.left, y); ctx.lineTo(area.right, y); ctx.stroke();
        }
        for (const set of chart.data.datasets) { ctx.setLineDash([]); drawBand(ctx, scales, set); drawBars(ctx, scales, area, set); }
        ctx.restore();
        // Upright text above the horizontal axis, where a size has no point.
        ctx.save();
        ctx.font = '600 11px ' + family;
        ctx.fillStyle = theme.learning;
        ctx.textAlign = 'left';
        ctx.textBaseline = 'alphabetic';
        for (const mark of chart.config.data.marks || []) {
          ctx.save();
          ctx.translate(Math.min(scales.x.getPixelForValue(mark.x) + 18, area.right - 2), area.bottom - 8);
          ctx.rotate(-Math.PI / 2);
          ctx.fillText(mark.text, 0, 0);
          ctx.restore();
        }
        ctx.restore();
      }
    },
    afterDraw(chart) { drawLegend(chart, themes[chart.config.data.theme]); },
  };

  // Fills in what every chart has in common.
  function complete(config, themeName) {
    const theme = themes[themeName];
    config.data.theme = themeName;
    config.plugins = [annotations];
    const options = config.options;
    options.layout = { padding: ({ chart }) => ({ top: 8 + legendRows(chart).length * rowHeight, right: 14, left: 2, bottom: 2 }) };
    for (const scale of Object.values(options.scales)) {
      scale.grid = Object.assign({ color: theme.grid, borderColor: theme.grey }, scale.grid);
      scale.ticks = Object.assign({ color: theme.soft }, scale.ticks);
      if (scale.title) Object.assign(scale.title, { display: true, color: theme.soft });
    }
    return config;
  }

  function make(canvas, build, themeName) {
    return new Chart(canvas, complete(build(themes[themeName]), themeName));
  }

  // The chart once more, on white and of a fixed size, for a paper.
  function offscreen(build, width, height, ratio) {
    const canvas = document.createElement('canvas');
    canvas.width = width;
    canvas.height = height;
    canvas.style.width = width + 'px';
    canvas.style.height = height + 'px';
    const config = complete(build(themes.light), 'light');
    Object.assign(config.options, { responsive: false, devicePixelRatio: ratio });
    return new Chart(canvas, config);
  }

  function svg(build, width, height) {
    const chart = offscreen(build, width, height, 1);
    const real = chart.ctx, drawn = new SvgContext(chart.canvas, real);
    chart.ctx = drawn;
    for (const scale of Object.values(chart.scales)) scale.ctx = drawn;
    chart.data.datasets.forEach((_, index) => { chart.getDatasetMeta(index).controller._ctx = drawn; });
    for (const box of chart.boxes || []) if (box.ctx) box.ctx = drawn;
    chart.draw();
    const text = drawn.text(width, height, themes.light.paper);
    chart.ctx = real;
    chart.destroy();
    return text;
  }

  function png(build, width, height) {
    const chart = offscreen(build, width, height, 3);
    const paper = document.createElement('canvas');
    paper.width = chart.canvas.width;
    paper.height = chart.canvas.height;
    const ctx = paper.getContext('2d');
    ctx.fillStyle = themes.light.paper;
    ctx.fillRect(0, 0, paper.width, paper.height);
    ctx.drawImage(chart.canvas, 0, 0);
    chart.destroy();
    return paper;
  }

  function save(name, blob) {
    const link = document.createElement('a');
    link.download = name;
    link.href = URL.createObjectURL(blob);
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  return { make, svg, png, save, shapes, dashes };
})();
