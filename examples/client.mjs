// SPDX-License-Identifier: Apache-2.0
// Translates a text over HTTP, with what Node and browsers bring: it asks web_handler.py.
//
//   node examples/client.mjs "The ticket office opens at 5:45."

const service = process.env.CT2_WEB ?? "http://localhost:8080";
const [text, ...targets] = process.argv.slice(2);

const response = await fetch(`${service}/translate`, {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify({ text, targets: targets.length > 0 ? targets : ["de", "fr"] }),
  signal: AbortSignal.timeout(10_000), // rather an error than a long wait
});
const answer = await response.json();
if (!response.ok) {
  console.error(`${response.status}: ${answer.error}`);
  process.exit(1);
}
for (const [language, translation] of Object.entries(answer)) {
  console.log(`${language}  ${translation}`);
}
