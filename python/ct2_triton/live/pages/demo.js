// SPDX-License-Identifier: Apache-2.0
// The demo page: the source beside all languages, with delay and erasure as they are seen here.
"use strict";

const KEPT_TIMES = 500;
const arrivals = new Map(); // "segment time" of the source -> when it came
const figures = new Map(); // language -> what was seen of it
const shown = new Map(); // "language segment" -> words on the screen

function words(text) {
  return text.split(/\s+/).filter(Boolean);
}

function erased(before, after) {
  let same = 0;
  while (same < before.length && before[same] === after[same]) same += 1;
  return before.length - same;
}

function measure(message, column) {
  const moment = `${message.segment} ${message.time}`;
  if (message.target === "source") {
    arrivals.set(moment, performance.now());
    if (arrivals.size > KEPT_TIMES) arrivals.delete(arrivals.keys().next().value);
    return;
  }
  const seen = figures.get(message.target) || { erased: 0, words: 0, delays: [] };
  figures.set(message.target, seen);
  const key = `${message.target} ${message.segment}`;
  const now = words(message.committed + message.tail);
  seen.erased += erased(shown.get(key) || [], now);
  if (message.final) {
    seen.words += now.length;
    shown.delete(key);
  } else {
    shown.set(key, now);
  }
  if (arrivals.has(moment)) seen.delays.push(performance.now() - arrivals.get(moment));
  if (seen.delays.length > 100) seen.delays.shift();
  const sorted = [...seen.delays].sort((a, b) => a - b);
  const delay = sorted.length ? `${sorted[sorted.length >> 1].toFixed(0)} ms` : "–";
  const erasure = seen.words ? (seen.erased / seen.words).toFixed(2) : "–";
  column.title.textContent = `${nameOf(message.target)} · delay ${delay} · erasure ${erasure}`;
}

const page = new CaptionPage({
  main: document.getElementById("main"),
  status: document.getElementById("status"),
  onMessage: measure,
});

page.languages().then(
  (names) => page.choose(["source", ...Object.keys(names).filter((code) => code !== "source")]),
  (error) => { page.status.textContent = error.message; },
);
