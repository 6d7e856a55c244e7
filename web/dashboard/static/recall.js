// Two lists side by side: the same memory is seen in both.
const hits = document.querySelectorAll(".two .hit");
const point = (event) => {
  const over = event.target.closest(".hit")?.dataset.memory;
  for (const hit of hits) hit.classList.toggle("same", over !== undefined && hit.dataset.memory === over);
};
for (const list of document.querySelectorAll(".two")) {
  for (const kind of ["pointerover", "focusin"]) list.addEventListener(kind, point);
  list.addEventListener("pointerleave", point);
}

// An address that is shared names what was chosen, and nothing else.
document.querySelector(".lab").addEventListener("formdata", ({ formData }) => {
  for (const [name, value] of [...formData]) if (value === "") formData.delete(name);
});
