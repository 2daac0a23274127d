"use strict";

const bars = 5; // classes shown, the most probable ones
const find = (id) => document.getElementById(id);
// A probability that would be rounded to 0 or 100 % is written as a bound.
const percent = (p) => (p > 0.9995 ? "> 99.9 %" : p < 0.0005 ? "< 0.1 %" : (100 * p).toFixed(1) + " %");
const level = (p) => +(100 * p).toFixed(2) + " %";
let run = { classNames: [], calibrated: false, maxImages: 1 };

function make(kind, text, ...classes) {
  const made = document.createElement(kind);
  made.textContent = text;
  made.classList.add(...classes);
  return made;
}

function showStatus(text, error = false) {
  find("status").textContent = text;
  find("status").classList.toggle("error", error);
}

let token = ""; // asked for when the server needs one; it is kept only here

async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: token ? { Authorization: "Bearer " + token } : {} });
  } catch {
    throw new Error("Cannot reach the server.");
  }
  if (response.status === 401) {
    token = window.prompt(token ? "The server has another token:" : "The server needs a token:") || "";
    if (token) return request(path, options);
  }
  let content;
  try {
    content = await response.json();
  } catch {
    throw new Error("The server returned status " + response.status + ".");
  }
  if (!response.ok) throw new Error(content.error || "The server returned status " + response.status + ".");
  return content;
}

let query = ""; // selects the model that answers; "" is the one that answers without parameters

// The choices among the models that the server lists: their texts and queries. The default answers without a query:
// the last version of the first name.
function choicesOf(models) {
  const standard = models.map((m) => m.name).lastIndexOf(models[0].name);
  return models.map((m, i) => ({
    text: models.filter((other) => other.name === m.name).length > 1 ? m.name + ", version " + m.version : m.name,
    query: new URLSearchParams({ model: m.name, version: m.version }).toString(),
    standard: i === standard,
  }));
}

// Reports whether the server has answered.
async function showModels() {
  try {
    const { models } = await request("v2/models");
    if (models.length < 2) return true;
    for (const choice of choicesOf(models)) {
      const option = make("option", choice.text);
      option.value = choice.query;
      option.selected = choice.standard;
      if (choice.standard) query = choice.query;
      find("model").append(option);
    }
    find("choice").hidden = false;
    return true;
  } catch (error) {
    showStatus(error.message, true);
    return false;
  }
}

async function showRun() {
  const mine = query;
  let described;
  try {
    described = await request("run?" + mine);
  } catch (error) {
    showStatus(error.message, true);
    return;
  }
  if (mine !== query) return; // another model was chosen in the meantime
  run = described;
  const names = run.classNames;
  const shown = names.length <= 12 ? names.join(", ") : names.slice(0, 11).join(", ") + " and " + (names.length - 11) + " others";
  document.title = run.name + " – Pollen";
  find("about").textContent = run.network + " by " + run.method + ", trained on " + run.data + ", " + run.samples +
    (run.samples === 1 ? " sample" : " samples") + "; classes: " + shown + "." +
    (run.risk ? " " + riskText(run.risk) : "") + (run.classThresholds ? fallbackText(run.classThresholds) : "") +
    (run.selfTest ? " Tested on images that are none of these, it " + run.selfTest.result + "." : "");
}

function riskText(risk) {
  const errors = "at most " + level(risk.risk) + " errors, with " + level(risk.confidence) + " confidence";
  return risk.certified ? "Images with a confidence of at least " + risk.threshold.toFixed(3) + " before scaling are answered with " + errors + "; the others should be referred to a person."
    : "It cannot be certified that answers have " + errors + ": all images should be referred to a person.";
}

// Classes that have too few calibration images for a guarantee of their own.
function fallbackText(thresholds) {
  const classes = thresholds.filter((t) => t.marginal).map((t) => t.class + " (" + t.images + " of " + t.needed + " images)");
  return classes.length === 0 ? " Prediction sets hold for the images of each class."
    : " Prediction sets hold for the images of each class, except for these, with too few calibration images, which have the threshold of all classes: " +
      classes.join(", ") + ".";
}

function bar(name, probability, inSet) {
  const row = make("li", "");
  if (inSet) row.classList.add("in");
  const label = make("span", name, "name");
  label.title = name;
  const track = make("span", "", "track");
  const fill = make("div", "", "fill");
  fill.style.width = 100 * probability + "%";
  track.setAttribute("aria-hidden", "true");
  track.append(fill);
  row.append(label, track, make("span", percent(probability), "percent"));
  return row;
}

// The name of the image of an answer, which is its place in a file of arrays, such as digits.npy[3].
const nameOf = (file, answer) => ((answer.file || "").endsWith("]") ? answer.file : file.name || "pasted image");

function preview(card, file, name) {
  const image = card.querySelector("img");
  image.alt = name;
  image.addEventListener("load", () => {
    image.classList.toggle("small", image.naturalWidth <= 96);
    URL.revokeObjectURL(image.src);
  });
  image.addEventListener("error", () => {
    URL.revokeObjectURL(image.src);
    image.replaceWith(make("div", "This browser cannot show " + image.alt, "none"));
  });
  image.src = URL.createObjectURL(file);
}

function show(file, answer) {
  const card = find("card").content.cloneNode(true);
  const set = answer.predictionSet || [];
  const name = nameOf(file, answer);
  preview(card, file, name);
  if (answer.error) {
    card.querySelector("h2").textContent = name;
    card.querySelector(".set").textContent = answer.error;
    find("answers").append(card);
    return;
  }
  card.querySelector("h2").textContent = answer.class + (answer.inDistribution === false ? "?" : "");
  const badges = card.querySelector(".badges");
  badges.append(make("span", percent(answer.confidence) + " confidence", "badge"));
  if (answer.inDistribution !== undefined) {
    if (!answer.inDistribution) badges.append(make("span", "out of distribution", "badge", "ood"));
    // A run that cannot tell strange images from its own must not vouch for one.
    else if (run.selfTest && run.selfTest.passed) badges.append(make("span", "in distribution", "badge", "good"));
  }
  if (answer.refer !== undefined) badges.append(answer.refer ? make("span", "refer to a person", "badge", "ood") : make("span", "answer", "badge", "good"));
  const order = answer.probabilities.map((_, i) => i).sort((a, b) => answer.probabilities[b] - answer.probabilities[a]);
  for (const i of order.slice(0, bars)) {
    card.querySelector(".bars").append(bar(run.classNames[i], answer.probabilities[i], set.includes(run.classNames[i])));
  }
  let text = "No prediction set: the run is not calibrated for this level.";
  if (answer.predictionSet && set.length === 0) text = "Prediction set: empty. No class is likely enough for this image.";
  else if (answer.predictionSet) text = "Prediction set: " + set.join(", ") + ". It contains the true class of " + level(run.level) + " of images like the training images.";
  card.querySelector(".set").textContent = text;
  card.querySelector(".uncertainty").textContent = "Entropy " + answer.entropy.toFixed(3) + " nats, mutual information " +
    answer.mutualInformation.toFixed(3) + " nats.";
  find("answers").append(card);
}

// The file of each answer. A file of arrays, such as digits.npy, has an answer for each of its images, which
// are called digits.npy[0], digits.npy[1] and so on.
function filesOf(files, answers) {
  if (answers.length === files.length) return files;
  const seen = new Set();
  let at = 0;
  return answers.map((answer, i) => {
    const name = answer.file || "", before = i > 0 ? answers[i - 1].file || "" : "";
    const same = name.startsWith(files[at].name) && name.endsWith("]") && before !== files[at].name && !seen.has(name);
    if (i > 0 && !same) {
      at = Math.min(at + 1, files.length - 1);
      seen.clear();
    }
    seen.add(name);
    return files[at];
  });
}

let latest = 0; // answers to earlier requests are not shown

async function predict(list) {
  const files = list.filter((file) => file.size > 0);
  await shown;
  if (files.length === 0) return;
  if (files.length > run.maxImages) {
    showStatus("At most " + run.maxImages + " images at a time, got " + files.length + ".", true);
    return;
  }
  const form = new FormData();
  for (const file of files) form.append("images", file);
  showStatus(files.length === 1 ? "Predicting…" : "Predicting " + files.length + " images…");
  find("answers").replaceChildren();
  const mine = ++latest;
  try {
    const { answers } = await request("predict?probabilities=true&" + query, { method: "POST", body: form });
    if (mine !== latest) return;
    const sources = filesOf(files, answers);
    answers.forEach((answer, i) => show(sources[i], answer));
    const failed = answers.filter((answer) => answer.error).length;
    if (failed > 0) showStatus((answers.length - failed) + " predictions, " + failed + (failed === 1 ? " error." : " errors."), true);
    else showStatus(answers.length === 1 ? "Prediction: " + answers[0].class + "." : answers.length + " predictions.");
  } catch (error) {
    if (mine === latest) showStatus(error.message, true);
  }
}

find("form").addEventListener("submit", (event) => event.preventDefault());
find("files").addEventListener("change", (event) => {
  predict(Array.from(event.target.files));
  find("form").reset(); // the same file can be chosen again
});
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("over");
});
document.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) document.body.classList.remove("over");
});
document.addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("over");
  predict(Array.from(event.dataTransfer.files));
});
document.addEventListener("paste", (event) => predict(Array.from(event.clipboardData.files)));
find("model").addEventListener("change", (event) => {
  query = event.target.value;
  latest++;
  find("answers").replaceChildren();
  showStatus("");
  shown = showRun();
});
let shown = showModels().then((answered) => answered && showRun()); // until then it is unknown which classes the model has
