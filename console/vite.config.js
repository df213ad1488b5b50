import { fileURLToPath } from "node:url";

import { defineConfig } from "vite";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** Puts the style of the search page into it: so it shows after one request. */
const inlineStyle = {
  name: "inline-style",
  transformIndexHtml: {
    order: "post",
    handler: (html, { filename, bundle }) =>
      filename.endsWith("search.html")
        ? html.replace(/<link rel="stylesheet"[^>]*href="console\/([^"]+)">/, (_, name) => {
            const { source } = bundle[name];
            delete bundle[name];
            return `<style>${source.trim()}</style>`;
          })
        : html,
  },
};

// The API serves what is built here: index.html under /, search.html under /search, the rest under /console/.
export default defineConfig({
  base: "/console/",
  plugins: [inlineStyle],
  // Addresses are relative, since a proxy may show the service below a path.
  experimental: { renderBuiltUrl: (name, { hostType }) => (hostType === "html" ? `console/${name}` : { relative: true }) },
  resolve: {
    alias: { "engram-client": here("../clients/typescript/src/index.ts") },
    dedupe: ["openapi-fetch"],
  },
  build: {
    outDir: here("../app/engram/console"),
    emptyOutDir: true,
    assetsDir: ".",
    assetsInlineLimit: 0, // data: addresses would have to be allowed by the page's policy
    modulePreload: { polyfill: false },
    target: "es2022",
    rolldownOptions: { input: [here("index.html"), here("search.html")], output: { entryFileNames: "[name]-[hash].js", chunkFileNames: "[name]-[hash].js" } },
  },
  worker: { format: "es", rolldownOptions: { output: { entryFileNames: "[name]-[hash].js" } } },
  server: { proxy: { "^/(?!console/|@|src/|node_modules/).+": process.env.ENGRAM_URL ?? "http://127.0.0.1:8000" } },
});
