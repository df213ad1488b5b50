"""Ten policies in three versions each, in English, German and French, and four questions on each policy."""

from dataclasses import dataclass


@dataclass(frozen=True)
class VersionQuestion:
    """A question, and the year of the version that answers it."""

    text: str
    year: int


@dataclass(frozen=True)
class Policy:
    """A policy in the versions of three years.

    Attributes:
        template: text of a version; ``{value}`` and ``{year}`` differ.
        values: year -> what the version of this year says.
    """

    name: str
    title: str
    template: str
    values: dict[int, str]
    questions: tuple[VersionQuestion, ...]


def _ask(now: str, plain: str, year: int, then: str, changes: str, last: int) -> tuple[VersionQuestion, ...]:
    return (
        VersionQuestion(now, last),
        VersionQuestion(plain, last),
        VersionQuestion(then, year),
        VersionQuestion(changes, last),
    )


POLICIES = (
    Policy(
        "travel-policy",
        "Travel policy",
        "Employees book trips with the travel desk. The daily travel allowance is {value}. Receipts are kept for "
        "two years.",
        {2022: "28 EUR", 2024: "30 EUR", 2025: "33 EUR"},
        _ask(
            "What is the daily travel allowance now?",
            "How high is the daily travel allowance?",
            2022,
            "What was the daily travel allowance in 2022?",
            "How did the daily travel allowance change?",
            2025,
        ),
    ),
    Policy(
        "password-rules",
        "Password rules",
        "Passwords protect every account. A password has at least {value}. It is never sent by mail.",
        {2020: "8 characters", 2022: "12 characters", 2024: "16 characters"},
        _ask(
            "How long must a password be today?",
            "What is the least length of a password?",
            2020,
            "How long did a password have to be in 2020?",
            "What is different about the length of passwords?",
            2024,
        ),
    ),
    Policy(
        "urlaubsregelung",
        "Urlaubsregelung",
        "Urlaub wird im Portal beantragt. Der Urlaubsanspruch beträgt {value}. Resturlaub verfällt Ende März.",
        {2021: "27 Tage", 2023: "28 Tage", 2025: "30 Tage"},
        _ask(
            "Wie hoch ist der Urlaubsanspruch aktuell?",
            "Wie viele Tage Urlaub gibt es?",
            2021,
            "Wie viele Tage Urlaub gab es im Jahr 2021?",
            "Was hat sich am Urlaubsanspruch geändert?",
            2025,
        ),
    ),
    Policy(
        "spesenordnung",
        "Spesenordnung",
        "Belege werden eingescannt. Das Kilometergeld beträgt {value}. Die Auszahlung erfolgt mit dem Gehalt.",
        {2020: "25 Cent", 2022: "30 Cent", 2024: "38 Cent"},
        _ask(
            "Wie hoch ist das Kilometergeld heute?",
            "Welches Kilometergeld wird gezahlt?",
            2022,
            "Welches Kilometergeld wurde 2022 gezahlt?",
            "Wie hat sich das Kilometergeld verändert?",
            2024,
        ),
    ),
    Policy(
        "teletravail",
        "Charte du télétravail",
        "Le télétravail est convenu avec l'équipe. Le télétravail est limité à {value}. Le bureau est partagé.",
        {2021: "quatre jours par semaine", 2023: "trois jours par semaine", 2025: "deux jours par semaine"},
        _ask(
            "À combien de jours le télétravail est-il limité actuellement ?",
            "Combien de jours de télétravail sont permis ?",
            2021,
            "Combien de jours de télétravail étaient permis en 2021 ?",
            "Qu'est-ce qui a changé pour le télétravail ?",
            2025,
        ),
    ),
    Policy(
        "frais-repas",
        "Frais de repas",
        "Les reçus sont numérisés. Le remboursement d'un repas est de {value}. Le paiement suit avec le salaire.",
        {2020: "15 euros", 2022: "18 euros", 2024: "21 euros"},
        _ask(
            "Quel est le remboursement d'un repas aujourd'hui ?",
            "Combien est remboursé pour un repas ?",
            2020,
            "Combien était remboursé pour un repas en 2020 ?",
            "Comment le remboursement des repas a-t-il changé ?",
            2024,
        ),
    ),
    Policy(
        "visitor-rules",
        "Rules for visitors",
        "Visitors sign in at the gate. A visitor badge is valid for {value}. Lost badges are reported.",
        {2021: "one day", 2023: "three days", 2026: "one week"},
        _ask(
            "How long is a visitor badge valid at present?",
            "For how long can a guest use a badge?",
            2023,
            "How long was a visitor badge valid in 2023?",
            "What changed about the validity of visitor badges?",
            2026,
        ),
    ),
    Policy(
        "parking-fees",
        "Parking fees",
        "The car park opens at six. A place costs {value} a month. Bicycles are free.",
        {2022: "40 pounds", 2023: "55 pounds", 2025: "62 pounds"},
        _ask(
            "What does a parking place cost today?",
            "How much is parking a month?",
            2022,
            "What did a parking place cost in 2022?",
            "How have parking fees changed?",
            2025,
        ),
    ),
    Policy(
        "bereitschaft",
        "Bereitschaftsdienst",
        "Der Dienst beginnt am Montag. Eine Woche Bereitschaft wird mit {value} vergütet. Anrufe werden notiert.",
        {2020: "150 Euro", 2023: "180 Euro", 2025: "220 Euro"},
        _ask(
            "Wie wird eine Woche Bereitschaft derzeit vergütet?",
            "Was bekomme ich für eine Woche Bereitschaft?",
            2023,
            "Wie wurde eine Woche Bereitschaft 2023 vergütet?",
            "Was hat sich an der Vergütung der Bereitschaft geändert?",
            2025,
        ),
    ),
    Policy(
        "conges-parentaux",
        "Congé parental",
        "La demande se fait par écrit. Le congé parental dure {value}. Le poste est gardé.",
        {2019: "onze jours", 2021: "vingt jours", 2024: "vingt-huit jours"},
        _ask(
            "Combien de temps dure le congé parental maintenant ?",
            "Combien de jours de congé parental ai-je ?",
            2021,
            "Combien de temps durait le congé parental en 2021 ?",
            "Comment le congé parental a-t-il changé ?",
            2024,
        ),
    ),
)


def list_lines() -> list[dict[str, object]]:
    """A passage for each version, dated by metadata, a line, a name or a title in turn."""
    lines: list[dict[str, object]] = []
    for number, policy in enumerate(POLICIES):
        for year, value in policy.values.items():
            text = policy.template.format(value=value, year=year)
            metadata: dict[str, object] = {}
            source, title = f"{policy.name}-{value.replace(' ', '-')}.md", policy.title
            if number % 4 == 0:
                metadata["date"] = f"{year}-02-01"
            elif number % 4 == 1:
                source = f"{policy.name}-{year}.md"
            elif number % 4 == 2:
                title = f"{policy.title} {year}"
            else:
                source = f"{year}/{policy.name}.md"
            lines.append(
                {"id": f"{source}#1", "document": source, "title": title, "text": text, "metadata": metadata}
            )
    return lines


def find_source(policy: Policy, year: int) -> str:
    """The document of a policy's version."""
    value = policy.values[year]
    text = policy.template.format(value=value, year=year)
    return next(str(line["document"]) for line in list_lines() if line["text"] == text)
