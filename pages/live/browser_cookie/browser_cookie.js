// Without a date it goes when the browser is closed; no other site gets it.
export default function ({ data }) {
  const seconds = data.text ? data.days && data.days * 86400 : 0;
  const age = seconds === null ? "" : `; max-age=${seconds}`;
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `${data.name}=${data.text}; path=/; SameSite=Lax${secure}${age}`;
}
