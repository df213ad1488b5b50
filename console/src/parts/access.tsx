/** Who uses the page: by an access key, by a login at the identity provider, or anybody where the service asks for neither. */

import { useCallback, useEffect, useState } from "preact/hooks";

import { connect, EngramError, key, PAGE, problem, read, REFUSED, SERVICE, type Schemas } from "../service";

/** Whether people can log in. The service writes it into the page. */
const HAS_LOGIN = document.documentElement.hasAttribute("data-login");
/** Set in the tab from a login until it counts, so that a page never logs in twice by itself. */
const LOGGING_IN = "engram.login";

export interface Access {
  me: Schemas["WhoOut"] | null;
  /** Whether the service wants to know who asks. */
  isWanted: boolean;
  error: unknown;
  enter: () => Promise<void>;
  /** Null if there is nothing to leave. */
  leave: (() => Promise<void>) | null;
}

/** Find out who uses the page; where nobody is known and people can log in, lead there and back. */
export function useAccess(): Access {
  const [me, setMe] = useState<Access["me"]>(null);
  const [error, setError] = useState<unknown>();
  const [isWanted, setIsWanted] = useState(false);
  const enter = useCallback(async () => {
    setError(undefined);
    try {
      setMe(await read<Schemas["WhoOut"]>(connect("default").api.GET("/access/me")));
      setIsWanted(false);
      sessionStorage.removeItem(LOGGING_IN);
    } catch (refused) {
      const isUnknown = refused instanceof EngramError && refused.status === 401;
      const isKeyless = key.get() === undefined;
      if (isUnknown && isKeyless && HAS_LOGIN && sessionStorage.getItem(LOGGING_IN) === null) return logIn();
      setMe(null);
      setIsWanted(isUnknown);
      setError(isUnknown && isKeyless ? undefined : refused);
    }
  }, []);
  const again = () => {
    setMe(null);
    void enter();
  };
  useEffect(() => void enter(), []);
  useEffect(() => {
    if (me === null) return;
    addEventListener(REFUSED, again, { once: true });
    return () => removeEventListener(REFUSED, again);
  }, [me]);
  const leave = async () => {
    if (key.get() === undefined) {
      sessionStorage.setItem(LOGGING_IN, "");
      await fetch(`${SERVICE}/login`, { method: "DELETE", headers: PAGE });
    } else {
      key.set("");
    }
    again();
  };
  const isKnown = me !== null && (key.get() !== undefined || me.name.startsWith("oidc:"));
  return { me, isWanted, error, enter, leave: isKnown ? leave : null };
}

/** Go to the identity provider, which leads back to this address. */
function logIn(): void {
  sessionStorage.setItem(LOGGING_IN, "");
  location.assign(`${SERVICE}/login?to=${encodeURIComponent(location.href.slice(SERVICE.length))}`);
}

/** The name that a person knows oneself by. */
export function personOf({ name, principals }: Schemas["WhoOut"]): string {
  return principals.find((one) => one.startsWith("user:"))?.slice("user:".length) ?? name;
}

/** Asks for a login, or for an access key. */
export function AccessForm({ access }: { access: Access }) {
  const [value, setValue] = useState("");
  const submit = (event: Event) => {
    event.preventDefault();
    key.set(value.trim());
    void access.enter();
  };
  return (
    <form class="panel stack" onSubmit={submit}>
      {HAS_LOGIN && (
        <button type="button" class="main" onClick={logIn}>
          Log in
        </button>
      )}
      <p>{HAS_LOGIN ? "Or use an access key." : "This service asks for an access key."}</p>
      <label class="field">
        <span>Access key</span>
        <input
          type="password"
          autocomplete="off"
          spellcheck={false}
          placeholder="engram_…"
          value={value}
          onInput={(event) => setValue(event.currentTarget.value)}
        />
      </label>
      {access.error !== undefined && (
        <p class="note bad" role="alert">
          {problem(access.error)}
        </p>
      )}
      <button class={HAS_LOGIN ? "" : "main"} disabled={value.trim() === ""}>
        Open
      </button>
      <p class="quiet">It is kept in this tab until you close it, and sent to this service only.</p>
    </form>
  );
}
