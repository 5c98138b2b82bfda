import type { Observe } from "./event.js";

/** Tells all of them; none can harm who tells, or another one. */
export function tellAll<Event>(observers: readonly Observe<Event>[]): (event: Event) => void {
  return (event) => {
    for (const observe of observers) {
      try {
        observe(event);
      } catch {
        // There is nobody else to tell.
      }
    }
  };
}
