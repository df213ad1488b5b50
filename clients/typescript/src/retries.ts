/** Further tries of what may succeed then. */

const TRANSIENT = new Set([429, 502, 503, 504]);
const FIRST_WAIT = 250;
const LONGEST_WAIT = 20_000;

/**
 * `send`, tried again where there is no connection or the answer may be another one next time. It waits as long as
 * `Retry-After` says, else a random part of a wait that doubles, so that clients which failed together do not come back
 * together. A request that its caller aborts is not tried again.
 */
export function retrying(send: typeof fetch, retries: number, timeout: number): (request: Request) => Promise<Response> {
  return async (request) => {
    for (let tried = 0; ; tried += 1) {
      let response: Response | undefined;
      try {
        const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeout)]);
        response = await send(new Request(request.clone(), { signal }));
        if (!TRANSIENT.has(response.status) || tried >= retries) return response;
        await response.body?.cancel();
      } catch (error) {
        if (request.signal.aborted || tried >= retries) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, wait(tried, response)));
    }
  };
}

function wait(tried: number, response: Response | undefined): number {
  const named = Number(response?.headers.get("retry-after") ?? Number.NaN);
  if (Number.isFinite(named) && named >= 0) return Math.min(named * 1000, LONGEST_WAIT);
  return Math.random() * Math.min(FIRST_WAIT * 2 ** tried, LONGEST_WAIT);
}
