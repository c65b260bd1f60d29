// Preact and htm, in one place: all other modules import what they draw with from here.

import { h } from "preact";
import htm from "htm";

export { Fragment, render } from "preact";
export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

/** Draws a template literal: html`<p>${text}</p>`. What is put in is text, never markup. */
export const html = htm.bind(h);

/**
 * Class names that are set: classes("row", isOpen && "open").
 * @param {...(string | false | null | undefined)} names
 */
export function classes(...names) {
  return names.filter(Boolean).join(" ");
}
