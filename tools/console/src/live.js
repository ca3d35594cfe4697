// Parts of a page that come anew whenever something changed. What a person is choosing stays until it is chosen.

for (const part of document.querySelectorAll("[data-live]")) {
  let waiting;
  const show = () => {
    const focused = document.activeElement;
    if (waiting === undefined || waiting === part.innerHTML) return;
    if (part.contains(focused) && focused.matches("select, input:not([type=hidden])")) return;
    const at = part.contains(focused) ? [...part.querySelectorAll("a, button")].indexOf(focused) : -1;
    part.innerHTML = waiting;
    waiting = undefined;
    if (at >= 0) part.querySelectorAll("a, button")[at]?.focus({ preventScroll: true });
  };
  new EventSource(part.dataset.live).addEventListener("part", ({ data }) => {
    waiting = JSON.parse(data);
    show();
  });
  part.addEventListener("focusout", () => setTimeout(show));
}
