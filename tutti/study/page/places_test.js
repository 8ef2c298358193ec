// node places_test.js: every size of a study has a place of its own on the axis of ranks.
const assert = require('node:assert');
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const Places = new Function(readFileSync(join(__dirname, 'places.js'), 'utf8') + 'return Places;')();

const rows = (...sizes) => sizes.map((size) => ({ ranks: Number(size.split('/')[0]), parts: size.split('/')[1] || '' }));
const places = (...sizes) => Places.of(rows(...sizes));

assert.deepEqual(places('1', '2', '4', '4/2', '4/2x2', '8'), [0, 1, 2, 2.25, 2.5, 3]);
assert.deepEqual(places('4/2', '4/4'), [2.25, 2.5]);
for (const sizes of [['4/2', '4/2x2', '5', '5/5', '6'], ['12', '12/2', '12/3', '12/4', '12/6', '12/2x2', '13'], ['8', '8/2', '8/4', '8/8', '8/2x2', '8/2x4', '8/4x2']]) {
  const at = places(...sizes);
  for (let i = 1; i < at.length; ++i) assert(at[i] > at[i - 1] + 0.01, `${sizes[i - 1]} and ${sizes[i]}: ${at}`);
}
