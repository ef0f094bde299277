// SPDX-License-Identifier: Apache-2.0
// Translates a text over HTTP, with what Node brings: it asks a model of text on the server itself.
//
//   node examples/client.mjs "The ticket office opens at 5:45." de fr

const server = process.env.CT2_HTTP ?? "http://localhost:8000";
const model = process.env.CT2_MODEL ?? "demo-text";
const [text, ...targets] = process.argv.slice(2);
const languages = targets.length > 0 ? targets : ["de", "fr"];

const response = await fetch(`${server}/v2/models/${model}/generate`, {
  method: "POST",
  body: JSON.stringify({ text_input: text, source_language: "en", target_languages: languages }),
  signal: AbortSignal.timeout(10_000), // rather an error than a long wait
});
const answer = await response.json();
if (!response.ok) {
  console.error(`${response.status}: ${answer.error}`);
  process.exit(1);
}
// One language gives one text, several give a list in their order.
[answer.text_output].flat().forEach((translation, place) => {
  console.log(`${languages[place]}  ${translation}`);
});
