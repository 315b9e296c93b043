byId("about").textContent = `${runs.length} run${runs.length > 1 ? "s" : ""}, written ${data.written}`;

const darkNow = () => {
  const { theme } = document.documentElement.dataset;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};
const showTheme = () => byId("theme").setAttribute("aria-pressed", String(darkNow()));
byId("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = darkNow() ? "light" : "dark";
  showTheme();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showTheme);
showTheme();

drawColumnChoice();
drawTable();
addCurves();
drawSettings();
addSections();
