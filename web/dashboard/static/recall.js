// Highlight the same memory in both lists.
const hits = document.querySelectorAll(".two .hit");
const point = (event) => {
  const over = event.target.closest(".hit")?.dataset.memory;
  for (const hit of hits) hit.classList.toggle("same", over !== undefined && hit.dataset.memory === over);
};
for (const list of document.querySelectorAll(".two")) {
  for (const kind of ["pointerover", "focusin"]) list.addEventListener(kind, point);
  list.addEventListener("pointerleave", point);
}

// Leave empty fields out of the address.
document.querySelector(".lab").addEventListener("formdata", ({ formData }) => {
  for (const [name, value] of [...formData]) if (value === "") formData.delete(name);
});
