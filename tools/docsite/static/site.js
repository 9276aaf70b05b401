// The arrows that open a branch of the navigation have no name of their own: whoever hears the page needs one.
document.addEventListener("DOMContentLoaded", () => {
  for (const arrow of document.querySelectorAll("details > summary")) {
    const link = arrow.closest("li")?.querySelector("a");
    if (!arrow.textContent.trim() && link) arrow.setAttribute("aria-label", `Pages below ${link.textContent.trim()}`);
  }
});
