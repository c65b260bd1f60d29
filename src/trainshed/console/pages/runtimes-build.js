// A build as it goes: the server tells each change until it is over.

import { useEffect, useState } from "../lib/ui.js";
import { EVERYWHERE, send } from "../lib/api.js";
import { jsonLines } from "../lib/json-lines.js";

/** @typedef {import("./runtimes.js").Runtime} Runtime */

/**
 * The newest of a runtime that is being built; of several the first is followed, since connections are few.
 * @param {Runtime | undefined} runtime
 * @param {() => void} onOver
 * @returns {Runtime | null}
 */
export function useBuild(runtime, onOver) {
  const [latest, setLatest] = useState(/** @type {Runtime | null} */ (null));
  useEffect(() => {
    if (!runtime) return;
    const gone = new AbortController();
    const follow = async () => {
      const answer = await send("GET", `${EVERYWHERE}/runtimes/${encodeURIComponent(runtime.id)}:follow`, { signal: gone.signal });
      for await (const item of jsonLines(answer)) setLatest(item);
    };
    // Whether it ended or the connection did, the list says how it stands.
    follow().catch(() => {}).then(() => {
      if (gone.signal.aborted) return;
      setLatest(null);
      onOver();
    });
    return () => gone.abort();
  }, [runtime?.id]);
  return latest && latest.id === runtime?.id ? latest : null;
}
