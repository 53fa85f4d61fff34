// Builds the bundle that the page and the command line share: `npm ci && npm run build`.
// The result is committed, so that building Weighbridge needs no Node.
import { build } from 'esbuild';
import { readFileSync, writeFileSync } from 'node:fs';

const version = JSON.parse(readFileSync('node_modules/echarts/package.json', 'utf8')).version;
const built = await build({
  entryPoints: ['entry.mjs'],
  bundle: true,
  minify: true,
  write: false,
  format: 'iife',
  globalName: 'WeighCharts',
  target: 'es2020',
  charset: 'ascii',
  legalComments: 'none',
  define: { 'process.env.NODE_ENV': '"production"', __DEV__: 'false' },
});
const notice = `/* Apache ECharts ${version} and ZRender, (c) The Apache Software Foundation and the authors of
ZRender. Apache License 2.0 and BSD 3-Clause: see crates/report/echarts/LICENCES.txt. Parts of
ECharts only, with the formatters of Weighbridge; built by crates/report/echarts/build.mjs. */
`;
// A closing tag inside the bundle would end the script element that it is put into.
const code = built.outputFiles[0].text.replaceAll('</', '<\\/');
writeFileSync('weigh-charts.js', notice + code);
console.log(`weigh-charts.js: ${notice.length + code.length} bytes, ECharts ${version}`);
