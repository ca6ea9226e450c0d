// The same knobs under an engine: what it lacks, or takes to mean off, is off; its own rules hold at the boundaries.

import { OFF } from "./reshape.js";

// engine: {stages, off, rules, window}; see engines.py. Returns settings for `reshape`.
export function under(engine, settings) {
  const used = { ...settings, rules: engine.rules, penalty_last_n: (engine.window && settings.penalty_last_n) || null };
  for (const name of Object.keys(OFF)) {
    if (!engine.stages.includes(name) || engine.off[name]?.includes(settings[name])) used[name] = OFF[name];
  }
  return used;
}

// The settings with an engine's own defaults, everything else off; the logit bias is the reader's and stays.
export function defaults(engine, settings) {
  return { ...settings, ...OFF, logit_bias: settings.logit_bias, penalty_last_n: 0, order: engine.order, ...engine.defaults };
}
