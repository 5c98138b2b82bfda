import { OneAtATime } from "./one-at-a-time.js";

export interface MachineWorkPorts {
  readonly sweepFiles: () => Promise<void>;
  /** Begins it in the background, if that is wanted. */
  readonly mirrorOffered: () => void;
  readonly stopOrphanedJobs: () => Promise<void>;
}

/** How often the files of this machine are looked through. */
const sweepEveryMs = 60 * 60_000;
/** How often jobs are looked for whose operation has ended while nobody waited for them. */
const orphansEveryMs = 3_000;

/**
 * What every machine does for itself in the background, because each has files and jobs of its own: it is no operation of the journal, of
 * which one process would do it. What cannot be done now is found again the next time.
 */
export class MachineWork {
  readonly #ports: MachineWorkPorts;
  readonly #stoppingOrphans: OneAtATime<void>;
  #timers: readonly NodeJS.Timeout[] = [];

  constructor(ports: MachineWorkPorts) {
    this.#ports = ports;
    this.#stoppingOrphans = new OneAtATime(ports.stopOrphanedJobs);
  }

  start(): void {
    const lookThroughFiles = () => {
      void this.#ports.sweepFiles().catch(() => undefined);
      this.#ports.mirrorOffered();
    };
    const stopOrphans = () => void this.#stoppingOrphans.run().catch(() => undefined);
    this.stop();
    this.#timers = [setInterval(lookThroughFiles, sweepEveryMs), setInterval(stopOrphans, orphansEveryMs)];
    for (const timer of this.#timers) timer.unref();
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
  }
}
