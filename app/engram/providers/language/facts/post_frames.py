"""Verb frames of posts: how somebody gets one, holds one and leaves one."""

from engram.providers.language.facts.noun_phrases import NounPhrases, Phrase
from engram.providers.language.facts.roles import Role
from engram.providers.language.facts.sentence_items import Item
from engram.providers.language.facts.verb_arguments import TIMELESS, Arguments, Days
from engram.providers.language.facts.verb_groups import VerbGroup

APPOINTMENT_VERBS = frozenset(
    """appointed assigned chosen chose co-opted confirmed crowned designated elected elevated engaged enthroned
    hired
    inaugurated installed made named ordained picked promoted reappointed recruited reelected selected sworn tapped
    voted""".split()
)
"""Verbs by which somebody gets a post: "NAME was ... as ROLE", "ORGANISATION ... NAME as ROLE"."""
_BEFORE_POST = ("as", "to", "into")


class PostFrames(NounPhrases):
    """Frames of verbs about posts."""

    def hold_passive(self, subject: Phrase, _: VerbGroup, arguments: Arguments) -> None:
        """Read "was elected mayor of NAME", "was promoted to ROLE" and "was appointed in 2015"."""
        role, days = self._find_given_role(arguments), arguments.compute_first_days()
        if subject.name is None or days is None or arguments.has_list:
            return
        if role is not None:
            self.hold(subject.name, role.with_organisation(self.employers.get(subject.name)), days)
        elif subject.name in self.posts and not arguments.objects and days != TIMELESS:
            self.hold(subject.name, self.posts[subject.name][0], days)

    def hold_active(self, subject: Phrase, _: VerbGroup, arguments: Arguments) -> None:
        """Read "NAME appointed NAME as treasurer": the post is the second name's."""
        objects = arguments.objects
        if not objects or objects[0].name is None or arguments.has_list:
            return
        role, days = self._find_given_role(arguments), arguments.compute_first_days()
        if role is None or days is None:
            return
        employer = subject.name
        if employer is not None and (employer in self.posts or employer in self.employers):
            employer = self.employers.get(employer)
        self.hold(objects[0].name, role.with_organisation(employer), days)

    def begin(self, subject: Phrase, group: VerbGroup, arguments: Arguments) -> None:
        """Read "became ROLE", "took over as ROLE", "rose to ROLE" and "joined NAME as ROLE"."""
        objects = arguments.objects
        employer = objects[0].name if objects else None
        role = arguments.role(*_BEFORE_POST) or (objects[0].role if objects else None)
        days, old = arguments.compute_first_days(), arguments.name("from")
        if subject.name is None or role is None or days is None or arguments.has_list:
            return
        if role.kind == "organisation" or (objects and employer is None and objects[0].role is None):
            return
        if not role.is_post and employer is None and role.preposition not in {"at", "for", "of"}:
            return
        text = role.with_organisation(employer or self.employers.get(subject.name))
        if old is not None and old.name is not None and group.verb == "took over":
            self._hand_over(old.name, subject.name, text, arguments)
        else:
            self.hold(subject.name, text, days)

    def serve(self, subject: Phrase, group: VerbGroup, arguments: Arguments) -> None:
        """Read "serves as ROLE" and "served as ROLE from 2011 to 2015"."""
        role, days = arguments.role("as"), arguments.state_days()
        if role is None and arguments.objects:
            role = arguments.objects[0].role  # "remains professor of physics"
        is_over = group.is_over or group.verb in {"served", "acted"}
        if (
            role is None
            or days is None
            or arguments.has_list
            or (is_over and not group.perfect and days[1] is None)
        ):
            return
        if role.is_post:
            self.hold(subject.name, role.with_organisation(None), days)

    def resign(self, subject: Phrase, _: VerbGroup, arguments: Arguments) -> None:
        """Read "resigned as ROLE in 2017", "was dismissed as ROLE" and "left NAME in 2017"."""
        name, objects = subject.name, arguments.objects
        if name is None or arguments.has_list:
            return
        role, days = arguments.role("as", "from"), arguments.compute_last_days()
        employer = arguments.name("from") or next((one for one in objects if one.name is not None), None)
        known_post = self.posts.pop(name, (None, TIMELESS))[0]
        organisation = self.employers.get(name) or (employer.name if employer is not None else None)
        post = (
            role.with_organisation(organisation) if role is not None and role.kind != "organisation" else known_post
        )
        self.last_post = post
        if days is None or (role is not None and role.kind == "organisation"):
            return
        if post is not None:
            self.hold(name, post, days)
        elif employer is not None and employer.name is not None:
            self.state(name, "affiliation", employer.name, "entity", days)

    def succeed(self, subject: Phrase, _: VerbGroup, arguments: Arguments) -> None:
        """Read "succeeded NAME as director"."""
        objects = arguments.objects
        role = arguments.role("as")
        if role is None or not objects or objects[0].name is None or arguments.has_list:
            return
        employer = self.employers.get(subject.name or "") or self.employers.get(objects[0].name)
        self._hand_over(objects[0].name, subject.name, role.with_organisation(employer), arguments)

    def read_succession(self, subject: Phrase, _: VerbGroup, arguments: Arguments) -> None:
        """Read "was succeeded as director by NAME"."""
        successor = arguments.name("by")
        role = arguments.role("as")
        known_post = self.last_post or self.posts.get(subject.name or "", (None, TIMELESS))[0]
        post = role.with_organisation(self.employers.get(subject.name or "")) if role is not None else known_post
        if successor is not None and post is not None and not arguments.has_list:
            self._hand_over(subject.name, successor.name, post, arguments)

    def hand_over(self, subject: Phrase, _: VerbGroup, arguments: Arguments) -> None:
        """Read "handed over the chair to NAME" and "handed over to NAME as ROLE"."""
        objects, successor = arguments.objects, arguments.name("to")
        role = arguments.role("as") or (objects[0].role if objects else None)
        if role is None or role.kind != "office" or successor is None or arguments.has_list:
            return
        self._hand_over(subject.name, successor.name, role.with_organisation(None), arguments)

    def read_holder(self, subject: Phrase, group: VerbGroup, arguments: Arguments) -> None:
        """Read "The chairman of NAME is NAME"."""
        role, objects = subject.role, arguments.objects
        if (
            role is None
            or role.kind != "office"
            or len(objects) != 1
            or objects[0].name is None
            or arguments.has_list
        ):
            return
        days = subject.days if subject.days != TIMELESS else arguments.state_days()
        if days is not None and not (group.is_over and days[1] is None):
            self.context.note(objects[0].name)
            self.hold(objects[0].name, role.with_organisation(subject.owner), days)

    def _find_given_role(self, arguments: Arguments) -> Role | None:
        """Return the role that a verb of naming gives: an object, or what follows "as" or "to"."""
        direct = next((one.role for one in arguments.objects if one.role is not None), None)
        role = direct or arguments.role(*_BEFORE_POST)
        return role if role is not None and role.kind != "organisation" else None

    def _hand_over(self, old: str | None, new: str | None, post: str, arguments: Arguments) -> None:
        """State that a post passes from one name to another."""
        dates = [item for item in self.items[: arguments.end] if item.kind == "D"]
        # "Stepped down in December 2015 and was succeeded by": the date is the sentence's.
        date = arguments.date or (dates[0] if len(dates) == 1 else None)
        begin, end = _turn(date)
        if date is not None and arguments.has_vague_date:
            return
        self.hold(new, post, begin)
        if end is not None:
            self.hold(old, post, end)

    def hold(self, subject: str | None, post: str, days: Days) -> None:
        """State that somebody holds a post; a title beside the name is the same post or the one before."""
        self.posts.pop(subject or "", None)
        self.last_post = post
        self.state(subject, "position held", post, "text", days)


def _turn(date: Item | None) -> tuple[Days, Days | None]:
    """Return the days of a successor and of a predecessor."""
    if date is None or date.time is None or date.time.start is None or date.time.end is None:
        return TIMELESS, None
    return (date.time.start.toordinal(), None), (None, date.time.end.toordinal())
