// Builds the pages into ../dist, and serves them while working on them.

import { resolve } from "node:path";
import { defineConfig } from "vite";

/** @param {string} file */
const here = (file) => resolve(import.meta.dirname, file);

export default defineConfig({
  // Relative addresses: dist works from any folder of any host.
  base: "./",
  server: {
    // The default model lies outside www/.
    fs: { allow: [here(".."), here("../models")] },
  },
  worker: { format: "es" },
  build: {
    outDir: here("../dist"),
    emptyOutDir: true,
    // WebAssembly SIMD and module workers set the floor, so nothing older needs care.
    target: "es2022",
    // Every file stays a file: wasm must stream, and a data: URL cannot.
    assetsInlineLimit: 0,
    modulePreload: false,
    rolldownOptions: {
      input: {
        index: here("index.html"),
        embed: here("embed.html"),
        gpu: here("gpu.html"),
        "logit-scope": here("src/logit-scope.js"),
      },
      output: {
        // Other people's pages name this one, so its name has no hash.
        entryFileNames: (chunk) =>
          chunk.name === "logit-scope" ? "[name].js" : "assets/[name]-[hash].js",
      },
    },
  },
});
