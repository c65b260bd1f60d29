// A table: real rows and headers; columns may be sorted by, and say how they are aligned.

import { classes, html } from "../lib/ui.js";

/**
 * @template T
 * @typedef {{name: string, title: string, cell: (row: T) => unknown, isNumber?: boolean, isWide?: boolean,
 *   canSort?: boolean, head?: unknown}} Column `head`: what its header has instead of the title
 */

const LONG = 30; // letters of a title from which on it may be cut

/**
 * `sort` is "name" or "name desc"; `onSort` gets the next one.
 * @template T
 * @param {{caption: string, columns: Column<T>[], rows: T[], rowKey: (row: T) => string,
 *   rowClass?: (row: T) => string, sort?: string, onSort?: (sort: string) => void, children?: unknown}} props
 */
export function Table({ caption, columns, rows, rowKey, rowClass, sort = "", onSort }) {
  const [by, order] = sort.split(" ");
  return html`${onSort && html`<${SortChoice} columns=${columns} sort=${sort} onSort=${onSort} />`}
  <div class="table-frame" role="region" aria-label=${caption} tabindex="0">
    <table>
      <caption class="unseen">${caption}</caption>
      <thead>
        <tr>
          ${columns.map(
            (column) => html`<th
              key=${column.name}
              scope="col"
              class=${classes(column.isNumber && "number", column.isWide && "wide")}
              title=${column.title.length > LONG ? column.title : undefined}
              aria-sort=${by === column.name ? (order === "desc" ? "descending" : "ascending") : undefined}
            >
              ${column.canSort && onSort
                ? html`<button type="button" class="plain" onClick=${() => onSort(next(column.name, by, order))}>
                    ${column.title}<span aria-hidden="true">${by === column.name ? (order === "desc" ? " ↓" : " ↑") : ""}</span>
                  </button>`
                : column.head ?? column.title}
            </th>`,
          )}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) => html`<tr key=${rowKey(row)} class=${rowClass?.(row) ?? ""}>
            ${columns.map(
              (column) => html`<td
                key=${column.name}
                data-title=${column.title}
                class=${classes(column.isNumber && "number", column.isWide && "wide")}
              >
                ${column.cell(row)}
              </td>`,
            )}
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/**
 * The same for a phone, where rows are cards without headers.
 * @param {{columns: Column<any>[], sort: string, onSort: (sort: string) => void}} props
 */
function SortChoice({ columns, sort, onSort }) {
  const orders = columns.filter(({ canSort }) => canSort).flatMap(({ name, title }) => [
    [name, `${title} ↑`],
    [`${name} desc`, `${title} ↓`],
  ]);
  return html`<label class="sort-choice">Sort by <select value=${sort} onChange=${(/** @type {any} */ event) => onSort(event.target.value)}>
    ${orders.map(([value, words]) => html`<option key=${value} value=${value}>${words}</option>`)}
  </select></label>`;
}

/** @param {string} name @param {string} by @param {string} [order] */
const next = (name, by, order) => (by === name && order !== "desc" ? `${name} desc` : name);
