import { fileURLToPath } from "node:url";

import { defineConfig } from "vite";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** Puts the style of the search page into it, and its script last: so it works after one request. */
const inlineAll = {
  name: "inline-all",
  transformIndexHtml: {
    order: "post",
    handler(html, { bundle }) {
      const take = (name) => {
        const { source, code } = bundle[name];
        delete bundle[name];
        return (source ?? code).trim();
      };
      let script = "";
      return html
        .replace(/<link rel="stylesheet"[^>]*href="console\/([^"]+)">/, (_, name) => `<style>${take(name)}</style>`)
        .replace(/\s*<script type="module"[^>]*src="console\/([^"]+)"><\/script>/, (_, name) => {
          script = `<script type="module">${take(name)}</script>`;
          return "";
        })
        .replace("</body>", () => `${script}\n  </body>`);
    },
  },
};

// The API serves what is built here: index.html under /, search.html under /search, the rest under /console/.
// The search page is built apart (mode "search"), since it shares no file with the console.
export default defineConfig(({ mode }) => ({
  base: "/console/",
  plugins: mode === "search" ? [inlineAll] : [],
  // Addresses are relative, since a proxy may show the service below a path.
  experimental: { renderBuiltUrl: (name, { hostType }) => (hostType === "html" ? `console/${name}` : { relative: true }) },
  resolve: {
    alias: { "engram-client": here("../clients/typescript/src/index.ts") },
    dedupe: ["openapi-fetch"],
  },
  build: {
    outDir: here("../app/engram/console"),
    emptyOutDir: mode !== "search",
    assetsDir: ".",
    assetsInlineLimit: 0, // data: addresses would have to be allowed by the page's policy
    modulePreload: { polyfill: false },
    target: "es2022",
    rolldownOptions: { input: here(mode === "search" ? "search.html" : "index.html"), output: { entryFileNames: "[name]-[hash].js", chunkFileNames: "[name]-[hash].js" } },
  },
  worker: { format: "es", rolldownOptions: { output: { entryFileNames: "[name]-[hash].js" } } },
  server: { proxy: { "^/(?!console/|@|src/|node_modules/).+": process.env.ENGRAM_URL ?? "http://127.0.0.1:8000" } },
}));
