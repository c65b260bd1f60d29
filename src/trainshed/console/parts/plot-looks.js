// The colours of graphs. A canvas knows no custom properties, so they are asked for what they mean now.

const GOLDEN = 137.508; // degrees between the hues of neighbours: no two of many lines are alike

/** The colour behind a custom property of style.css. @param {string} name */
export function inkOf(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  probe.hidden = true;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

// Not by a colour of the page: to ask for one lays the page out, and a comparison has a thousand lines.
const system = matchMedia("(prefers-color-scheme: dark)");

function isDark() {
  const { theme } = document.documentElement.dataset;
  return theme ? theme === "dark" : system.matches;
}

/** The colour of the line with this number. @param {number} number @param {number} [opacity] */
export function lineColour(number, opacity = 1) {
  const hue = Math.round((215 + number * GOLDEN) % 360);
  return `hsl(${hue} 62% ${isDark() ? 66 : 42}% / ${opacity})`;
}

/** uPlot's own looks, fetched once. */
export function loadPlotLooks() {
  const address = new URL("../vendor/uplot.css", import.meta.url).href;
  if (document.querySelector(`link[href="${address}"]`)) return;
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = address;
  document.head.append(link);
}
