// A slider next to the date field; the values at that time are fetched from the same page.
const form = document.querySelector("[data-asof]");

if (form) {
  const slider = form.querySelector("input[type=range]");
  const field = form.querySelector("input[name=as_of]");
  let waiting = 0;
  let fetching = new AbortController();

  const tell = () => slider.setAttribute("aria-valuetext", field.value.replace("T", " "));

  const load = async () => {
    fetching.abort();
    fetching = new AbortController();
    const address = new URL(location.href);
    address.searchParams.set("as_of", field.value);
    address.hash = "";
    try {
      const answer = await fetch(address, { signal: fetching.signal });
      if (!answer.ok || answer.redirected) return location.assign(address);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      document.getElementById("held").replaceChildren(...page.getElementById("held").childNodes);
      history.replaceState(null, "", address);
    } catch (error) {
      if (error.name !== "AbortError") location.assign(address);
    }
  };

  const soon = () => {
    clearTimeout(waiting);
    waiting = setTimeout(load, 120);
  };

  slider.hidden = false;
  tell();
  slider.addEventListener("input", () => {
    field.value = new Date(slider.value * 1000).toISOString().slice(0, 19);
    tell();
    soon();
  });
  field.addEventListener("change", () => {
    const seconds = Date.parse(`${field.value}Z`) / 1000;
    if (Number.isNaN(seconds)) return;
    slider.value = seconds;
    tell();
    soon();
  });
}

// Describe the value under the pointer or with keyboard focus below the time axis.
for (const kind of ["pointerover", "focusin"]) {
  document.addEventListener(kind, (event) => {
    const value = event.target.closest?.("[data-caption]");
    const caption = value && document.querySelector("[data-caption-of]");
    if (caption) caption.textContent = value.dataset.caption;
  });
}
