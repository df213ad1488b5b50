/** What the page says, in the reader's language where it has it: those in which chats without a model answer too. */

import { EngramError } from "../service";

const ENGLISH = {
  search: "Search",
  question: "Question",
  ask: "Ask a question",
  place: "Search in",
  nothing: "There is nothing that you may search.",
  results: "Results",
  otherWords: "Other words may help, or another place to search in.",
  showNearest: "Show the nearest passages anyway",
  person: "You are %.",
  logOut: "Log out",
  forgetKey: "Forget key",
  /** Whether the results hold the answer: from a probability of .9, .7, .4 and 0 on. */
  likely: [
    "The answer is very likely here.",
    "The answer is likely here.",
    "It is uncertain whether the answer is here. These passages are the nearest.",
    "The answer is probably not here. These passages are the nearest.",
  ],
  best: "These passages fit best.",
  notFound: "Not found here.",
  nearest: "The answer was not found here. These passages are the nearest.",
  searching: "Searching …",
  slow: "Still searching. The service is slow just now …",
  again: "Try again",
  page: "Page %",
  replaced: "Replaced by %",
  more: "Show what stands around it",
  less: "Show less",
  helped: "Helped",
  notHelped: "Did not help",
  rate: "Rate: %",
  storing: "Storing …",
  takenBack: "Your rating is taken back. It counts no more.",
  notTakenBack: "This earlier rating is gone, and cannot be taken back.",
  up: "Thank you. For this question and others like it, this passage goes up.",
  down: "Thank you. For this question and others like it, this passage goes down.",
  soon: "Thank you. It is stored, and counts shortly.",
  capped: "Thank you. It is stored, but changes nothing now: your ratings of today have moved this as far as they may.",
  unchanged: "Thank you. It is stored, but changes nothing for this question.",
  takeBack: "Press again to take it back.",
  notStored: "Your rating was not stored.",
  failed: "The page failed.",
  unanswered: "The service cannot answer just now.",
  failures: {
    0: "The service cannot be reached. It may be starting, or your connection is gone.",
    403: "You may not do this here.",
    404: "There is no such collection, or you may not search it.",
    413: "The question is too long.",
    422: "The service does not understand this question or its filter. The question may be too long.",
    429: "Too many questions came at once, or today's are used up. Wait a little.",
  } as Readonly<Record<number, string>>,
};

type Words = typeof ENGLISH;

const GERMAN: Words = {
  search: "Suche",
  question: "Frage",
  ask: "Stellen Sie eine Frage",
  place: "Suchen in",
  nothing: "Es gibt nichts, worin Sie suchen dürfen.",
  results: "Ergebnisse",
  otherWords: "Vielleicht helfen andere Worte, oder Sie suchen anderswo.",
  showNearest: "Trotzdem die ähnlichsten Stellen zeigen",
  person: "Sie sind %.",
  logOut: "Abmelden",
  forgetKey: "Schlüssel vergessen",
  likely: [
    "Die Antwort steht sehr wahrscheinlich hier.",
    "Die Antwort steht wahrscheinlich hier.",
    "Ob die Antwort hier steht, ist ungewiss. Dies sind die ähnlichsten Stellen.",
    "Die Antwort steht wohl nicht hier. Dies sind die ähnlichsten Stellen.",
  ],
  best: "Diese Stellen passen am besten.",
  notFound: "Hier nicht gefunden.",
  nearest: "Die Antwort wurde hier nicht gefunden. Dies sind die ähnlichsten Stellen.",
  searching: "Suche läuft …",
  slow: "Die Suche läuft noch. Der Dienst ist gerade langsam …",
  again: "Noch einmal versuchen",
  page: "Seite %",
  replaced: "Ersetzt durch %",
  more: "Zeigen, was darum herum steht",
  less: "Weniger zeigen",
  helped: "Hilfreich",
  notHelped: "Nicht hilfreich",
  rate: "Bewerten: %",
  storing: "Wird gespeichert …",
  takenBack: "Ihre Bewertung ist zurückgenommen und zählt nicht mehr.",
  notTakenBack: "Diese frühere Bewertung gibt es nicht mehr; sie lässt sich nicht zurücknehmen.",
  up: "Danke. Bei dieser Frage und ähnlichen rückt diese Stelle nach oben.",
  down: "Danke. Bei dieser Frage und ähnlichen rückt diese Stelle nach unten.",
  soon: "Danke. Ihre Bewertung ist gespeichert und zählt gleich.",
  capped: "Danke. Gespeichert, aber jetzt ändert sich nichts: mehr dürfen Ihre Bewertungen heute nicht verschieben.",
  unchanged: "Danke. Gespeichert, aber bei dieser Frage ändert sich nichts.",
  takeBack: "Noch einmal drücken nimmt es zurück.",
  notStored: "Ihre Bewertung wurde nicht gespeichert.",
  failed: "Die Seite hat einen Fehler.",
  unanswered: "Der Dienst kann gerade nicht antworten.",
  failures: {
    0: "Der Dienst ist nicht erreichbar. Vielleicht startet er, oder Ihre Verbindung ist weg.",
    403: "Das dürfen Sie hier nicht.",
    404: "Diese Sammlung gibt es nicht, oder Sie dürfen sie nicht durchsuchen.",
    413: "Die Frage ist zu lang.",
    422: "Der Dienst versteht die Frage oder ihren Filter nicht. Vielleicht ist sie zu lang.",
    429: "Zu viele Fragen auf einmal, oder die von heute sind verbraucht. Warten Sie ein wenig.",
  },
};

const FRENCH: Words = {
  search: "Recherche",
  question: "Question",
  ask: "Posez une question",
  place: "Chercher dans",
  nothing: "Il n’y a rien où vous puissiez chercher.",
  results: "Résultats",
  otherWords: "Essayez d’autres mots, ou cherchez ailleurs.",
  showNearest: "Montrer quand même les passages les plus proches",
  person: "Vous êtes %.",
  logOut: "Se déconnecter",
  forgetKey: "Oublier la clé",
  likely: [
    "La réponse est très probablement ici.",
    "La réponse est probablement ici.",
    "Il n’est pas certain que la réponse soit ici. Voici les passages les plus proches.",
    "La réponse n’est sans doute pas ici. Voici les passages les plus proches.",
  ],
  best: "Voici les passages qui conviennent le mieux.",
  notFound: "Rien trouvé ici.",
  nearest: "La réponse n’a pas été trouvée ici. Voici les passages les plus proches.",
  searching: "Recherche en cours …",
  slow: "La recherche continue. Le service est lent en ce moment …",
  again: "Réessayer",
  page: "Page %",
  replaced: "Remplacé par %",
  more: "Montrer ce qui l’entoure",
  less: "Montrer moins",
  helped: "Utile",
  notHelped: "Pas utile",
  rate: "Évaluer : %",
  storing: "Enregistrement …",
  takenBack: "Votre avis est retiré et ne compte plus.",
  notTakenBack: "Cet avis antérieur n’existe plus et ne peut être retiré.",
  up: "Merci. Pour cette question et d’autres semblables, ce passage monte.",
  down: "Merci. Pour cette question et d’autres semblables, ce passage descend.",
  soon: "Merci. Votre avis est enregistré et comptera bientôt.",
  capped: "Merci. Enregistré, mais rien ne change : vos avis d’aujourd’hui ont atteint leur limite.",
  unchanged: "Merci. Enregistré, mais rien ne change pour cette question.",
  takeBack: "Appuyez encore pour le retirer.",
  notStored: "Votre avis n’a pas été enregistré.",
  failed: "La page a rencontré une erreur.",
  unanswered: "Le service ne peut pas répondre pour le moment.",
  failures: {
    0: "Le service est injoignable. Il démarre peut-être, ou votre connexion est coupée.",
    403: "Vous n’y êtes pas autorisé.",
    404: "Cette collection n’existe pas, ou vous ne pouvez pas y chercher.",
    413: "La question est trop longue.",
    422: "Le service ne comprend pas la question ou son filtre. Elle est peut-être trop longue.",
    429: "Trop de questions à la fois, ou celles du jour sont épuisées. Attendez un peu.",
  },
};

const SPANISH: Words = {
  search: "Buscar",
  question: "Pregunta",
  ask: "Haga una pregunta",
  place: "Buscar en",
  nothing: "No hay nada en lo que pueda buscar.",
  results: "Resultados",
  otherWords: "Pruebe con otras palabras o busque en otro lugar.",
  showNearest: "Mostrar los pasajes más cercanos de todos modos",
  person: "Usted es %.",
  logOut: "Cerrar sesión",
  forgetKey: "Olvidar la clave",
  likely: [
    "La respuesta está muy probablemente aquí.",
    "La respuesta está probablemente aquí.",
    "No es seguro que la respuesta esté aquí. Estos son los pasajes más cercanos.",
    "La respuesta probablemente no está aquí. Estos son los pasajes más cercanos.",
  ],
  best: "Estos son los pasajes que mejor encajan.",
  notFound: "No se encontró aquí.",
  nearest: "La respuesta no se encontró aquí. Estos son los pasajes más cercanos.",
  searching: "Buscando …",
  slow: "Se sigue buscando. El servicio va lento en este momento …",
  again: "Intentar de nuevo",
  page: "Página %",
  replaced: "Sustituido por %",
  more: "Mostrar lo que hay alrededor",
  less: "Mostrar menos",
  helped: "Útil",
  notHelped: "No útil",
  rate: "Valorar: %",
  storing: "Guardando …",
  takenBack: "Su valoración se ha retirado y ya no cuenta.",
  notTakenBack: "Esta valoración anterior ya no existe y no se puede retirar.",
  up: "Gracias. Para esta pregunta y otras parecidas, este pasaje sube.",
  down: "Gracias. Para esta pregunta y otras parecidas, este pasaje baja.",
  soon: "Gracias. Su valoración está guardada y contará en breve.",
  capped: "Gracias. Guardada, pero nada cambia: sus valoraciones de hoy han llegado a su límite.",
  unchanged: "Gracias. Guardada, pero nada cambia para esta pregunta.",
  takeBack: "Pulse otra vez para retirarla.",
  notStored: "Su valoración no se guardó.",
  failed: "La página ha fallado.",
  unanswered: "El servicio no puede responder en este momento.",
  failures: {
    0: "No se puede acceder al servicio. Quizá esté arrancando, o se perdió su conexión.",
    403: "No puede hacer esto aquí.",
    404: "Esta colección no existe, o no puede buscar en ella.",
    413: "La pregunta es demasiado larga.",
    422: "El servicio no entiende la pregunta o su filtro. Quizá sea demasiado larga.",
    429: "Demasiadas preguntas a la vez, o las de hoy se han agotado. Espere un poco.",
  },
};

const CHINESE: Words = {
  search: "搜索",
  question: "问题",
  ask: "请输入问题",
  place: "搜索范围",
  nothing: "没有您可以搜索的内容。",
  results: "结果",
  otherWords: "可以换一种说法,或在别处搜索。",
  showNearest: "仍然显示最接近的段落",
  person: "您是 %。",
  logOut: "退出登录",
  forgetKey: "忘记密钥",
  likely: [
    "答案很可能在这里。",
    "答案可能在这里。",
    "不确定答案是否在这里。以下是最接近的段落。",
    "答案大概不在这里。以下是最接近的段落。",
  ],
  best: "以下是最相符的段落。",
  notFound: "这里没有找到。",
  nearest: "这里没有找到答案。以下是最接近的段落。",
  searching: "正在搜索……",
  slow: "仍在搜索,服务目前较慢……",
  again: "重试",
  page: "第 % 页",
  replaced: "已被 % 取代",
  more: "显示上下文",
  less: "收起",
  helped: "有帮助",
  notHelped: "没有帮助",
  rate: "评价:%",
  storing: "正在保存……",
  takenBack: "您的评价已撤回,不再计入。",
  notTakenBack: "这条先前的评价已不存在,无法撤回。",
  up: "谢谢。对于这个问题和类似的问题,此段落会靠前。",
  down: "谢谢。对于这个问题和类似的问题,此段落会靠后。",
  soon: "谢谢。评价已保存,很快生效。",
  capped: "谢谢。评价已保存,但目前没有变化:您今天的评价已达到上限。",
  unchanged: "谢谢。评价已保存,但对这个问题没有变化。",
  takeBack: "再按一次即可撤回。",
  notStored: "您的评价没有保存。",
  failed: "页面出错。",
  unanswered: "服务目前无法回答。",
  failures: {
    0: "无法连接服务。它可能正在启动,或您的网络已断开。",
    403: "您在这里无权这样做。",
    404: "没有这个集合,或您无权搜索。",
    413: "问题太长。",
    422: "服务无法理解这个问题或其筛选条件。问题可能太长。",
    429: "一次提问太多,或今天的次数已用完。请稍候。",
  },
};

const LANGUAGES: Readonly<Record<string, Words>> = { de: GERMAN, en: ENGLISH, es: SPANISH, fr: FRENCH, zh: CHINESE };

/** The first of the browser's languages that the page has. */
export const LANGUAGE = navigator.languages.map((code) => code.split("-")[0] ?? "").find((code) => code in LANGUAGES) ?? "en";
export const words: Words = LANGUAGES[LANGUAGE] ?? ENGLISH;

/** Puts a value into a sentence. */
export const fill = (sentence: string, value: string | number): string => sentence.replace("%", () => String(value));

/** Says how probably the results hold the whole answer. */
export function sayLikelihood(probability: number): string {
  const place = [0.9, 0.7, 0.4, 0].findIndex((least) => probability >= least);
  return words.likely[place] ?? "";
}

/** Says why a request failed. */
export function sayFailure(error: unknown): string {
  if (!(error instanceof EngramError)) return words.failed;
  return words.failures[error.status] ?? words.unanswered;
}

/** Says what a thumb did. `effect` is that of the verdict's receipt. */
export function sayEffect(up: boolean, effect: string | null | undefined): string {
  if (effect === null || effect === undefined) return words.soon;
  if (!effect.startsWith("Nothing")) return up ? words.up : words.down;
  return effect.includes("daily cap") ? words.capped : words.unchanged;
}
