"use strict";

const bars = 5; // classes shown, the most probable ones
const find = (id) => document.getElementById(id);
// Nothing is certain: a share that would be rounded to 0 or 100 is written as a bound.
const percent = (share) => (share > 0.9995 ? "> 99.9 %" : share < 0.0005 ? "< 0.1 %" : (100 * share).toFixed(1) + " %");
const level = (share) => +(100 * share).toFixed(2) + " %";
let run = { classNames: [], calibrated: false, maxImages: 1 };

function make(kind, text, ...classes) {
  const made = document.createElement(kind);
  made.textContent = text;
  made.classList.add(...classes);
  return made;
}

function say(text, error = false) {
  find("status").textContent = text;
  find("status").classList.toggle("error", error);
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("The server cannot be reached.");
  }
  let content;
  try {
    content = await response.json();
  } catch {
    throw new Error("The server answered " + response.status + ".");
  }
  if (!response.ok) throw new Error(content.error || "The server answered " + response.status + ".");
  return content;
}

async function introduce() {
  try {
    run = await request("run");
  } catch (error) {
    say(error.message, true);
    return;
  }
  const names = run.classNames;
  const shown = names.length <= 12 ? names.join(", ") : names.slice(0, 11).join(", ") + " and " + (names.length - 11) + " others";
  document.title = run.name + " – Pollen";
  find("about").textContent = run.network + " by " + run.method + ", trained on " + run.data + ", " + run.samples +
    (run.samples === 1 ? " sample" : " samples") + ". It knows: " + shown + ".";
}

function bar(name, share, inSet) {
  const row = make("li", "");
  if (inSet) row.classList.add("in");
  const label = make("span", name, "name");
  label.title = name;
  const track = make("span", "", "track");
  const fill = make("div", "", "fill");
  fill.style.width = 100 * share + "%";
  track.setAttribute("aria-hidden", "true");
  track.append(fill);
  row.append(label, track, make("span", percent(share), "share"));
  return row;
}

function picture(card, file) {
  const image = card.querySelector("img");
  image.alt = file.name || "pasted image";
  image.addEventListener("load", () => {
    image.classList.toggle("small", image.naturalWidth <= 96);
    URL.revokeObjectURL(image.src);
  });
  image.addEventListener("error", () => {
    URL.revokeObjectURL(image.src);
    image.replaceWith(make("div", "This browser does not show " + image.alt, "none"));
  });
  image.src = URL.createObjectURL(file);
}

function show(file, answer) {
  const card = find("card").content.cloneNode(true);
  const set = answer.predictionSet || [];
  picture(card, file);
  card.querySelector("h2").textContent = answer.class + (answer.inDistribution === false ? "?" : "");
  const badges = card.querySelector(".badges");
  badges.append(make("span", percent(answer.confidence) + " sure", "badge"));
  if (answer.inDistribution !== undefined) {
    badges.append(answer.inDistribution ? make("span", "in distribution", "badge", "good") : make("span", "out of distribution", "badge", "odd"));
  }
  const order = answer.probabilities.map((_, i) => i).sort((a, b) => answer.probabilities[b] - answer.probabilities[a]);
  for (const i of order.slice(0, bars)) {
    card.querySelector(".bars").append(bar(run.classNames[i], answer.probabilities[i], set.includes(run.classNames[i])));
  }
  let text = "The run was not calibrated for that, so it gives no set of plausible classes.";
  if (answer.predictionSet && set.length === 0) text = "No class is plausible: nothing it knows looks like this.";
  else if (answer.predictionSet) text = "Plausible: " + set.join(", ") + ". Of images like those trained on, " + level(run.level) + " have the true class in such a set.";
  card.querySelector(".set").textContent = text;
  card.querySelector(".doubt").textContent = "Entropy " + answer.entropy.toFixed(3) + " nats, of which the samples disagree on " +
    answer.mutualInformation.toFixed(3) + ".";
  find("answers").append(card);
}

let asked = 0; // answers to an earlier question are no longer shown

async function ask(list) {
  const files = Array.from(list).filter((file) => file.size > 0);
  if (files.length === 0) return;
  if (files.length > run.maxImages) {
    say("That is " + files.length + " images; at most " + run.maxImages + " at a time.", true);
    return;
  }
  const form = new FormData();
  for (const file of files) form.append("images", file);
  say(files.length === 1 ? "Looking…" : "Looking at " + files.length + " images…");
  find("answers").replaceChildren();
  const mine = ++asked;
  try {
    const { answers } = await request("predict?probabilities=true", { method: "POST", body: form });
    if (mine !== asked) return;
    files.forEach((file, i) => show(file, answers[i]));
    say(files.length === 1 ? "It says: " + answers[0].class + "." : answers.length + " answers.");
  } catch (error) {
    if (mine === asked) say(error.message, true);
  }
}

find("form").addEventListener("submit", (event) => event.preventDefault());
find("files").addEventListener("change", (event) => {
  ask(event.target.files);
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
  ask(event.dataTransfer.files);
});
document.addEventListener("paste", (event) => ask(event.clipboardData.files));
introduce();
