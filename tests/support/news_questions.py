"""Ten matters that three notices of different years tell of in words of their own, and four questions on each.

No notice replaces another by title or statement, so only dates tell which one holds.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Matter:
    """A matter, its notices and its questions.

    Attributes:
        notices: the year of each, its title and its text, in the order of time.
        now: two questions about now, which the last notice answers.
        then: a question about the year of the first notice, which this one answers.
        detail: a question without a time about a detail that only the first notice has.
    """

    language: str
    notices: tuple[tuple[int, str, str], ...]
    now: tuple[str, str]
    then: str
    detail: str


MATTERS = (
    Matter(
        "en",
        (
            (
                2019,
                "The canteen opens",
                "The canteen serves lunch from 11:30 to 13:30. The architect was Lena Brandt.",
            ),
            (2022, "Longer lunch", "Lunch in the canteen is now served from 11:00 to 14:00."),
            (2025, "New caterer", "With the new caterer the canteen serves lunch from 11:15 to 14:30."),
        ),
        ("When does the canteen serve lunch?", "What are the lunch hours of the canteen today?"),
        "When did the canteen serve lunch in 2019?",
        "Who was the architect of the canteen?",
    ),
    Matter(
        "en",
        (
            (
                2018,
                "Parking for staff",
                "Parking in the garage costs 20 euros a month. The barrier came from Urban Gates.",
            ),
            (2021, "Garage fees", "From now on a place to park in the garage costs 35 euros a month."),
            (2024, "Fewer cars", "Whoever parks in the garage pays 50 euros a month. Bicycles are free."),
        ),
        ("What does parking in the garage cost?", "How much do I currently pay to park in the garage?"),
        "What did parking in the garage cost in 2018?",
        "Which company made the barrier of the garage?",
    ),
    Matter(
        "en",
        (
            (
                2020,
                "Moving to the new printer",
                "Print jobs are kept for two days. The old printer went to the Riverside school.",
            ),
            (2023, "Printing after the update", "The print server keeps jobs for one day only."),
            (2025, "Green printing", "Print jobs are deleted after six hours to save paper."),
        ),
        ("How long are print jobs kept?", "After what time is a print job deleted now?"),
        "How long were print jobs kept in 2020?",
        "Where did the old printer go?",
    ),
    Matter(
        "en",
        (
            (
                2017,
                "Library hours",
                "Members may borrow four books at once. The library has a reading room by the lake.",
            ),
            (2021, "More to read", "Members of the library may now borrow eight books at once."),
            (2026, "Lending without limits", "Members may borrow as many as twelve books from the library."),
        ),
        ("How many books may members borrow?", "How many books can a member borrow at present?"),
        "How many books could members borrow in 2017?",
        "Where is the reading room of the library?",
    ),
    Matter(
        "de",
        (
            (2019, "Neue Kernzeit", "Die Kernzeit dauert von 9 bis 16 Uhr. Den Vorschlag machte Herr Kessler."),
            (2022, "Mehr Freiheit", "Ab jetzt gilt die Kernzeit nur noch von 10 bis 15 Uhr."),
            (2025, "Arbeit nach Maß", "Künftig beginnt die Kernzeit um 10 und endet um 14 Uhr."),
        ),
        ("Wann ist die Kernzeit?", "Von wann bis wann gilt die Kernzeit heute?"),
        "Wann war die Kernzeit im Jahr 2019?",
        "Wer machte den Vorschlag zur Kernzeit?",
    ),
    Matter(
        "de",
        (
            (
                2020,
                "Jobticket kommt",
                "Das Jobticket kostet 49 Euro im Monat. Die Verträge liegen im Archiv in Raum 12.",
            ),
            (2023, "Günstiger fahren", "Mitarbeiter zahlen für das Jobticket jetzt 29 Euro im Monat."),
            (2025, "Tarif der Verkehrsbetriebe", "Nach der Erhöhung kostet das Jobticket 38 Euro monatlich."),
        ),
        ("Was kostet das Jobticket?", "Wie viel zahlt man aktuell für das Jobticket?"),
        "Was kostete das Jobticket im Jahr 2020?",
        "In welchem Raum liegen die Verträge zum Jobticket?",
    ),
    Matter(
        "fr",
        (
            (2018, "Ouverture de la piscine", "La piscine ferme à 20 heures. Le bassin mesure vingt-cinq mètres."),
            (2021, "Soirées à la piscine", "La piscine reste ouverte et ferme désormais à 22 heures."),
            (2024, "Économies d'énergie", "Pour économiser l'énergie, la piscine ferme à 19 heures."),
        ),
        ("À quelle heure ferme la piscine ?", "Quand la piscine ferme-t-elle actuellement ?"),
        "À quelle heure fermait la piscine en 2018 ?",
        "Quelle est la longueur du bassin de la piscine ?",
    ),
    Matter(
        "fr",
        (
            (2019, "Le badge d'entrée", "Un badge perdu coûte 10 euros. Les badges sont fabriqués à Nantes."),
            (2022, "Perte de badge", "Le remplacement d'un badge perdu coûte maintenant 15 euros."),
            (2025, "Sécurité de l'immeuble", "Pour un badge perdu il faut payer 25 euros à l'accueil."),
        ),
        ("Combien coûte un badge perdu ?", "Quel est aujourd'hui le prix d'un badge perdu ?"),
        "Combien coûtait un badge perdu en 2019 ?",
        "Où les badges sont-ils fabriqués ?",
    ),
    Matter(
        "es",
        (
            (
                2018,
                "Taquillas nuevas",
                "El alquiler de una taquilla cuesta 5 euros al año. Las taquillas son de roble.",
            ),
            (2021, "Cambios en el vestuario", "Alquilar una taquilla cuesta ahora 8 euros al año."),
            (2025, "Vestuario renovado", "Con la reforma, el alquiler de la taquilla sube a 12 euros al año."),
        ),
        (
            "¿Cuánto cuesta el alquiler de una taquilla?",
            "¿Cuál es actualmente el precio de alquiler de la taquilla?",
        ),
        "¿Cuánto costaba el alquiler de una taquilla en 2018?",
        "¿De qué madera son las taquillas?",
    ),
    Matter(
        "es",
        (
            (
                2019,
                "Cursos de idiomas",
                "Cada curso de idiomas dura ocho semanas. La primera profesora fue Marta Ruiz.",
            ),
            (2022, "Aprender más", "Los cursos de idiomas duran ahora diez semanas."),
            (2024, "Academia en línea", "En la academia, un curso de idiomas tiene una duración de seis semanas."),
        ),
        ("¿Cuánto dura un curso de idiomas?", "¿Cuántas semanas dura hoy un curso de idiomas?"),
        "¿Cuánto duraba un curso de idiomas en 2019?",
        "¿Quién fue la primera profesora de los cursos de idiomas?",
    ),
)


def list_notices() -> list[dict[str, object]]:
    """A passage for each notice, dated by its metadata."""
    return [
        {
            "id": f"matter-{number}-{place}#1",
            "document": f"matter-{number}-{place}",
            "title": title,
            "text": text,
            "language": matter.language,
            "metadata": {"valid_from": f"{year}-03-01"},
        }
        for number, matter in enumerate(MATTERS)
        for place, (year, title, text) in enumerate(matter.notices)
    ]


def list_questions() -> list[tuple[str, str, str]]:
    """Kind, text and right document of each question."""
    return [
        (kind, text, f"matter-{number}-{place}")
        for number, matter in enumerate(MATTERS)
        for kind, text, place in (
            ("now", matter.now[0], 2),
            ("now", matter.now[1], 2),
            ("then", matter.then, 0),
            ("detail", matter.detail, 0),
        )
    ]
