// The same knobs under an engine: what it lacks, or takes to mean off, is off; its own rules hold at the boundaries.

import { OFF, STAGES, isOff } from "./reshape.js";

// engine: {stages, lacks, off, reads, rules, window, alone, limits}; see engines.py. Returns settings for `reshape`.
export function under(engine, settings) {
  const used = { ...settings, rules: engine.rules, penalty_last_n: windowOf(engine, settings.penalty_last_n ?? 0) };
  const switched = Object.keys(engine.alone ?? {}).find((field) => !isOff(field, settings[field]));
  const stages = switched ? engine.alone[switched] : engine.stages;
  for (const [name, { fields }] of Object.entries(STAGES)) {
    for (const field of fields) {
      if (field === "penalty_last_n") continue;
      const lacks = !stages.includes(name) || engine.lacks?.includes(field);
      if (lacks || engine.off[field]?.includes(settings[field])) used[field] = OFF[field];
      else used[field] = engine.reads[field]?.[settings[field]] ?? used[field];
    }
  }
  return used;
}

// How many of the latest tokens the penalties look at; null: all of them.
function windowOf({ window }, n) {
  return window === null || (n === 0 && window === "all") ? null : n;
}

// The first field that the engine's server refuses, with what it takes: {field, value, allowed}; null if there is none.
export function refusal({ stages, limits = {} }, settings) {
  for (const [field, { low, high, low_open, high_open, allowed }] of Object.entries(limits)) {
    const value = settings[field];
    if (isOff(field, value) || !stages.some((name) => STAGES[name].fields.includes(field))) continue;
    const isBelow = low !== null && (low_open ? value <= low : value < low);
    const isAbove = high !== null && (high_open ? value >= high : value > high);
    if (isBelow || isAbove) return { field, value, allowed };
  }
  return null;
}

// The settings with an engine's own defaults, everything else off; the logit bias is the reader's and stays.
export function defaults(engine, settings) {
  return { ...settings, ...OFF, logit_bias: settings.logit_bias, order: engine.order, ...engine.defaults };
}
