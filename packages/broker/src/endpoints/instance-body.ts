/** What answers tell of an instance: only what there is. */
export function instanceBody(dashboardUrl: string | null, metadata: object | null): object {
  return { ...(dashboardUrl !== null && { dashboard_url: dashboardUrl }), ...(metadata !== null && { metadata }) };
}
