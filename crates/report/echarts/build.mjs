// Builds the bundle that the page and the command line share: `npm ci && npm run build`.
// The result is committed, so that building Weighbridge needs no Node.
import { build } from 'esbuild';
import { readFileSync, writeFileSync } from 'node:fs';
import { minify } from 'terser';

// Modules of ECharts that no picture uses, and what takes their places: a tenth of the bundle.
const UNUSED = {
  'component/tooltip/TooltipRichContent.js': 'export default class {}',
  'i18n/langZH.js': 'export default {};',
  'preprocessor/backwardCompat.js': 'export default function () {}',
  'svg/cssAnimation.js': 'export function createCSSAnimation() {}',
  'theme/dark.js': 'export default {};',
  // Patterns of Weighbridge are made as SVG, and need no canvas.
  'util/decal.js': 'export function createOrUpdatePatternFromDecal(decal) { return decal; }',
};
const withoutUnused = {
  name: 'without-unused',
  setup: (builder) => builder.onLoad({ filter: /node_modules.(echarts|zrender).lib.*\.js$/ }, ({ path }) => {
    const contents = UNUSED[Object.keys(UNUSED).find((end) => path.replaceAll('\\', '/').endsWith(`/lib/${end}`))];
    return contents === undefined ? undefined : { contents, loader: 'js' };
  }),
};

const version = JSON.parse(readFileSync('node_modules/echarts/package.json', 'utf8')).version;
const built = await build({
  entryPoints: ['entry.mjs'],
  bundle: true,
  minifySyntax: true,
  plugins: [withoutUnused],
  write: false,
  format: 'iife',
  globalName: 'WeighCharts',
  target: 'es2020',
  charset: 'ascii',
  legalComments: 'none',
  define: { 'process.env.NODE_ENV': '"production"', __DEV__: 'false' },
});
const small = await minify(built.outputFiles[0].text, {
  ecma: 2020, compress: { passes: 3, ecma: 2020 }, format: { ascii_only: true, comments: false },
});
const notice = `/* Apache ECharts ${version} and ZRender, (c) The Apache Software Foundation and the authors of
ZRender. Apache License 2.0 and BSD 3-Clause: see crates/report/echarts/LICENCES.txt. Parts of
ECharts only, with the formatters of Weighbridge; built by crates/report/echarts/build.mjs. */
`;
// A closing tag inside the bundle would end the script element that it is put into.
const code = small.code.replaceAll('</', '<\\/');
writeFileSync('weigh-charts.js', notice + code);
console.log(`weigh-charts.js: ${notice.length + code.length} bytes, ECharts ${version}`);
