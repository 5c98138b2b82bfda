import type { Operation } from "@osbert/journal";
import type { OfferedService } from "../catalog/offered-service.js";
import type { HookRequest } from "../service/service.js";

/** The author's hook, as the operation's last step: it is not called again once it has ended well. */
export async function runAfterHook(
  { service: { hooks, name } }: OfferedService,
  operation: Pick<Operation, "step" | "requestId">,
  request: Omit<HookRequest, "service" | "requestId">,
): Promise<void> {
  if (hooks?.after === undefined) return;
  await operation.step("osbert: after", async () => {
    await hooks.after?.({ ...request, service: name, requestId: operation.requestId });
  });
}
