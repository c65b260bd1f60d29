// Lists that the server cuts into pages, and the focus that walks their rows.

import { useRef } from "./ui.js";
import { setQuery } from "./address.js";

/** @typedef {Record<string, string | number>} Place what the address has of a page, beside its number */

/**
 * Turns pages. The places of pages before are known only to who turned them: else it goes to the first.
 * @param {Place} place of the page that is shown; `from` is its token
 * @param {Place | undefined} next of the page behind it, if there is one
 * @param {number} page
 */
export function useTurning(place, next, page) {
  const places = useRef(/** @type {Record<number, Place>} */ ({}));
  places.current[page] = place;
  const empty = Object.fromEntries(Object.keys(place).map((name) => [name, ""]));
  const show = (/** @type {Place} */ to, /** @type {number} */ number) => {
    setQuery({ ...empty, ...to, page: number > 1 ? number : "" }, { replace: false });
    scrollTo(0, 0);
  };
  return {
    on: () => next && show(next, page + 1),
    back: () => {
      const to = places.current[page - 1];
      if (place.from) show(to ?? {}, to?.from ? page - 1 : 1);
    },
  };
}

/** Move the focus to the next of these links, from that of the row that has it. @param {string} links a selector @param {number} by */
export function stepFocus(links, by) {
  const all = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(links)]);
  const row = document.activeElement?.closest("tr");
  const at = all.findIndex((link) => row?.contains(link));
  const link = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
  link?.focus();
  link?.scrollIntoView({ block: "nearest" });
}
