// A drawing context that writes SVG: the part of the canvas's interface that Chart.js and draw.js
// use. `ruler` is a real context, which knows how wide a text is.
const SvgContext = (() => {
  const round = (value) => Math.round(value * 100) / 100;
  const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);
  const style = () => ({ fillStyle: '#000', strokeStyle: '#000', lineWidth: 1, lineCap: 'butt', lineJoin: 'miter', globalAlpha: 1,
    font: '12px sans-serif', textAlign: 'start', textBaseline: 'alphabetic', dash: [], matrix: [1, 0, 0, 1, 0, 0], clipName: '' });
  const anchors = { left: 'start', start: 'start', center: 'middle', right: 'end', end: 'end' };
  const shifts = { middle: 0.35, top: 0.8, hanging: 0.8, bottom: -0.2, alphabetic: 0, ideographic: -0.2 };

  return class {
    constructor(canvas, ruler) {
      Object.assign(this, style(), { canvas, ruler, parts: [], clips: [], stack: [], path: [] });
    }
    save() { this.stack.push(Object.fromEntries(Object.keys(style()).map((key) => [key, this[key]]))); }
    restore() { if (this.stack.length) Object.assign(this, this.stack.pop()); }
    translate(x, y) { this.transform(1, 0, 0, 1, x, y); }
    scale(x, y) { this.transform(x, 0, 0, y, 0, 0); }
    rotate(angle) { this.transform(Math.cos(angle), Math.sin(angle), -Math.sin(angle), Math.cos(angle), 0, 0); }
    transform(a, b, c, d, e, f) {
      const m = this.matrix;
      this.matrix = [m[0] * a + m[2] * b, m[1] * a + m[3] * b, m[0] * c + m[2] * d, m[1] * c + m[3] * d,
        m[0] * e + m[2] * f + m[4], m[1] * e + m[3] * f + m[5]];
    }
    setTransform(a, b, c, d, e, f) { this.matrix = [a, b, c, d, e, f]; }
    resetTransform() { this.matrix = [1, 0, 0, 1, 0, 0]; }
    setLineDash(dash) { this.dash = dash || []; }
    getLineDash() { return this.dash; }
    at(x, y) { const m = this.matrix; return `${round(m[0] * x + m[2] * y + m[4])} ${round(m[1] * x + m[3] * y + m[5])}`; }
    beginPath() { this.path = []; }
    moveTo(x, y) { this.path.push('M' + this.at(x, y)); }
    lineTo(x, y) { this.path.push((this.path.length ? 'L' : 'M') + this.at(x, y)); }
    bezierCurveTo(a, b, c, d, x, y) { this.path.push(`C${this.at(a, b)} ${this.at(c, d)} ${this.at(x, y)}`); }
    quadraticCurveTo(a, b, x, y) { this.path.push(`Q${this.at(a, b)} ${this.at(x, y)}`); }
    closePath() { this.path.push('Z'); }
    rect(x, y, w, h) { this.moveTo(x, y); this.lineTo(x + w, y); this.lineTo(x + w, y + h); this.lineTo(x, y + h); this.closePath(); }
    arc(x, y, r, from, to, back) {
      const turn = Math.abs(to - from) >= 2 * Math.PI - 1e-6;
      const point = (angle) => this.at(x + r * Math.cos(angle), y + r * Math.sin(angle));
      const sweep = back ? 0 : 1, end = turn ? from + Math.PI : to;
      const span = back ? from - end : end - from;
      const large = ((span % (2 * Math.PI)) + 2 * Math.PI) % (2 * Math.PI) > Math.PI ? 1 : 0;
      this.path.push((this.path.length ? 'L' : 'M') + point(from), `A${round(r)} ${round(r)} 0 ${large} ${sweep} ${point(end)}`);
      if (turn) this.path.push(`A${round(r)} ${round(r)} 0 0 ${sweep} ${point(from)}`);
    }
    ellipse(x, y, rx, ry, rotation, from, to, back) { this.arc(x, y, Math.max(rx, ry), from, to, back); }
    clip() {
      this.clips.push(this.path.join(''));
      this.clipName = `clip${this.clips.length}`;
    }
    add(element) { this.parts.push(this.clipName ? `<g clip-path="url(#${this.clipName})">${element}</g>` : element); }
    paint() { return `opacity="${round(this.globalAlpha)}"`; }
    stroke() {
      const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(' ')}"` : '';
      this.add(`<path d="${this.path.join('')}" fill="none" stroke="${escaped(this.strokeStyle)}" stroke-width="${round(this.lineWidth)}"` +
        ` stroke-linecap="${this.lineCap}" stroke-linejoin="${this.lineJoin}"${dash} ${this.paint()}/>`);
    }
    fill() { this.add(`<path d="${this.path.join('')}" fill="${escaped(this.fillStyle)}" ${this.paint()}/>`); }
    fillRect(x, y, w, h) { this.beginPath(); this.rect(x, y, w, h); this.fill(); }
    strokeRect(x, y, w, h) { this.beginPath(); this.rect(x, y, w, h); this.stroke(); }
    clearRect() {}
    measureText(text) { this.ruler.font = this.font; return this.ruler.measureText(text); }
    strokeText() {}
    fillText(text, x, y) {
      const size = parseFloat((/([\d.]+)px/.exec(this.font) || [0, 12])[1]);
      const weight = /\b(bold|[5-9]00)\b/.exec(this.font);
      const m = this.matrix.map(round).join(' ');
      this.add(`<text transform="matrix(${m})" x="${round(x)}" y="${round(y + size * (shifts[this.textBaseline] || 0))}" font-size="${size}"` +
        `${weight ? ` font-weight="${weight[1]}"` : ''} text-anchor="${anchors[this.textAlign]}" fill="${escaped(this.fillStyle)}">${escaped(text)}</text>`);
    }
    text(width, height, background) {
      return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
        `font-family="Helvetica, Arial, sans-serif"><rect width="100%" height="100%" fill="${background}"/><defs>` +
        this.clips.map((path, i) => `<clipPath id="clip${i + 1}"><path d="${path}"/></clipPath>`).join('') + `</defs>${this.parts.join('')}</svg>`;
    }
  };
})();
