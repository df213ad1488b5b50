/** The box of the question: it shows all lines of a long one, and Enter asks. */

export const boxOf = (form: HTMLFormElement): HTMLTextAreaElement => form.elements.namedItem("q") as HTMLTextAreaElement;

/** Make the box as high as its text. */
export function fit(box: HTMLTextAreaElement): void {
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight + box.offsetHeight - box.clientHeight}px`;
}

export function prepareBox(form: HTMLFormElement): void {
  const box = boxOf(form);
  for (const [target, event] of [[box, "input"], [window, "resize"]] as const) target.addEventListener(event, () => fit(box));
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
  fit(box);
}
