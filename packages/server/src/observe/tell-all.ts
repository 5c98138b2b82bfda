import type { News, Observe } from "./event.js";

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

/** Whether any of them makes something of such an event. */
export function anyNeeds<Event>(observers: readonly Observe<Event>[]): (news: News) => boolean {
  return (news) => observers.some((observe) => isNeeded(observe, news));
}

/** One that cannot say is told: an answer must not fail with its question. */
function isNeeded<Event>({ needs }: Observe<Event>, news: News): boolean {
  try {
    return needs?.(news) ?? true;
  } catch {
    return true;
  }
}
