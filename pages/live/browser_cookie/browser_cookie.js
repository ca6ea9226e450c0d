// Without a date it goes when the browser is closed; no other site gets it.
export default function ({ data }) {
  const past = data.text ? "" : "; max-age=0";
  document.cookie = `${data.name}=${data.text}; path=/; SameSite=Lax${past}`;
}
