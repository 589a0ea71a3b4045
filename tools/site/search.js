// Asks the site's search ten questions that users ask: node tools/site/search.js SITE
//
// In a question, a word after a hyphen excludes pages: "kill -9" finds those with "kill" and without "9".
// It runs the search of the theme, the file that a browser runs as a worker, on the index of the site. It prints the
// first three hits of each question, and fails when the wanted page is not among them.
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const HITS = 3;
const WANTED = [
  ["undo a commit", "guides/undo.html"],
  ["restore a file", "manual/vellum-restore.1.html"],
  ["open old version", "guides/undo.html"],
  ["too many regions", "guides/operating.html"],
  ["disk full", "guides/operating.html"],
  ["S3 credentials", "guides/remotes.html"],
  ["MPI", "guides/mpi.html"],
  ["numpy array", "guides/python.html"],
  ["kill -9", "guides/operating.html"],
  ["LMDB", "guides/backup-lmdb.html"],
];
const SETUP = 0, QUERY = 2; // kinds of messages to the worker

// The worker as a function: a message leads to its answer.
function worker(file) {
  let handler, answered;
  const scope = {
    console, URL, addEventListener: (_, given) => { handler = given; }, postMessage: message => answered(message),
  };
  scope.self = scope;
  vm.runInNewContext(fs.readFileSync(file, "utf8"), scope);
  return (type, data) => new Promise(resolve => {
    answered = resolve;
    handler({data: {type, data}});
  });
}

async function main(site) {
  const scripts = path.join(site, "assets/javascripts/workers");
  const ask = worker(path.join(scripts, fs.readdirSync(scripts).find(name => /^search\..*\.js$/.test(name))));
  const index = JSON.parse(fs.readFileSync(path.join(site, "search/search_index.json"), "utf8"));
  await ask(SETUP, {...index, options: {suggest: true}});
  let missed = 0;
  for (const [question, page] of WANTED) {
    const {data} = await ask(QUERY, question);
    const hits = data.items.slice(0, HITS).map(group => group[0].location.split("#")[0]);
    const found = hits.includes(page);
    missed += !found;
    console.log(`${question.padEnd(18)} ${hits.join("  ")}${found ? "" : `  MISSED: ${page}`}`);
  }
  return missed;
}

main(process.argv[2]).then(missed => process.exit(missed ? 1 : 0));
