"""Closed word classes by which a sentence falls into clauses, and what the commonest relations are called."""

BE = frozenset("is are was were be been".split())
AUXILIARIES = frozenset("has have had having do does did will would shall should".split())
DOUBT_WORDS = frozenset(
    """could might may can cannot not never no neither nor without unless if whether didn wasn isn doesn weren
    aren hasn hadn wouldn couldn""".split()
)
"""What they stand before did not happen, or may not have."""

SUBJECT_PRONOUNS = frozenset("he she it they".split())
OBJECTS = frozenset("him them me us".split())
POSSESSIVES = frozenset("his her its their".split())
RELATIVES = frozenset("who which that".split())
OTHER_RELATIVES = frozenset("whom whose where when why how what there".split())
DETERMINERS = frozenset(
    "a an the this that these those some any each every all both several many few one two three four five".split()
)
CONJUNCTIONS = frozenset({"and", "or", "&"})
BREAKS = frozenset("while whereas although though because since but after before until when as if so than".split())
"""Words that may begin another clause, which they do where a subject and a verb follow."""

PREPOSITIONS = frozenset(
    """about above across after against along alongside amid among around as at before behind below beneath
    beside between beyond by despite down during except following for from in inside into like near of
    off on onto opposite out outside over past per regarding since through throughout till to toward
    towards under underneath until up upon via with within without""".split()
)
ADVERBS = frozenset(
    """also then now later earlier soon often sometimes usually generally however originally initially
    previously formerly currently recently subsequently eventually finally first again still ever just
    even almost nearly mainly mostly primarily largely best well widely once twice together here
    therefore thus only already both either notably particularly especially perhaps probably likely
    possibly reportedly""".split()
)

# Past forms that do not end in -ed, and are no nouns.
_IRREGULAR = """became begun began bought brought built came chose chosen drew drawn drove fell fought found gave
    given got grew grown heard held kept knew known laid left lent lost made meant met paid ran read rose risen
    said sang sung sat saw seen sent shot shown sold spent spoke spoken stood struck taken taught thought
    told took went won wore worn written wrote bore born led""".split()
_PRESENT = """stars features plays includes contains follows tells serves lives works teaches runs leads owns hosts
    belongs consists covers produces publishes distributes operates focuses describes depicts portrays
    appears marks holds remains becomes represents comprises borders lies sits stands starts begins ends
    opens takes makes gives writes directs shows concerns centers centres revolves deals provides offers
    forms connects links flows joins governs owns manages supports uses employs specializes specialises
    co-stars stems derives""".split()
_BARE = """star feature play include contain live work belong consist stand lie border cover follow""".split()
VERBS = frozenset([*_IRREGULAR, *_PRESENT, *_BARE])
NO_VERBS = frozenset(
    """hundred red bed seed need speed breed feed indeed shed weed sacred naked wicked hatred kindred rugged
    united limited aged learned beloved-ed so-called gifted talented retired renowned acclaimed noted
    celebrated advanced animated unreleased unnamed related supposed alleged infrared biped embed exceed
    proceed succeed titled untitled bed""".split()
)
PARTICIPLES = frozenset(
    """born written drawn sung shot led held known built made given taken chosen shown sold bought found won
    sent seen left laid taught brought kept met told read drawn struck fought""".split()
)
"""Irregular forms that can stand before "by" without "was"; all in -ed can."""
NO_GERUNDS = frozenset(
    "king ring wing spring string thing nothing something everything anything during evening morning being".split()
)

OPENINGS = frozenset(
    """music production filming photography story screenplay lyrics soundtrack cinematography editing
    construction work development recording distribution filmmaker son daughter brother sister""".split()
)
"""Common nouns that often open a sentence without an article."""

RANKS = frozenset(
    """first second third fourth fifth last final former current early late only main own other new old young
    native original early well best popular famous""".split()
)

KIN = {
    "father": "father",
    "mother": "mother",
    "wife": "spouse",
    "husband": "spouse",
    "spouse": "spouse",
    "widow": "spouse",
    "widower": "spouse",
    "consort": "spouse",
    "son": "child",
    "daughter": "child",
    "child": "child",
    "brother": "sibling",
    "sister": "sibling",
    "sibling": "sibling",
    "twin": "sibling",
}
"""What somebody is of whom, by the word after "his"."""
INVERSE = {"father": "child", "mother": "child", "spouse": "spouse", "child": "parent", "sibling": "sibling"}
"""What the one after "of" is to the one before."""
KIN_PLURALS = {
    "sons": "child",
    "daughters": "child",
    "children": "child",
    "brothers": "sibling",
    "sisters": "sibling",
    "siblings": "sibling",
    "parents": "parent",
}
MALE = frozenset(
    """king prince count sir lord duke earl baron emperor tsar sultan pope marquess marquis viscount mr father
    he baronet actor husband businessman nobleman brother elector margrave landgrave shah khan chief
    pharaoh""".split()
)
FEMALE = frozenset(
    """queen princess countess lady duchess baroness empress tsarina marchioness viscountess mrs miss mother
    actress wife dame she infanta noblewoman sister heiress electress margravine""".split()
)

WORKS = frozenset(
    """film movie song album single novel book play opera musical series sitcom documentary drama comedy western
    thriller short ballad poem painting game miniseries ep soundtrack anthology sequel remake comic manga
    anime record track video cartoon serial silent romance melodrama telefilm biopic picture story memoir""".split()
)
"""What is released or published."""
LOCATION_PHRASES = frozenset(
    {"located in", "situated in", "based in", "lies in", "headquartered in", "found in", "set in"}
)
DERIVATION_NOUNS = frozenset(
    "sequel prequel remake adaptation version part spin-off spinoff followup follow-up cover".split()
)
PLACES = frozenset(
    """village town city municipality district county province region river lake mountain island commune hamlet
    locality suburb parish township neighbourhood neighborhood settlement peak hill valley bay peninsula
    stream creek airport station road highway street bridge building castle church school university
    college hospital museum park stadium census community borough ward""".split()
)
PEOPLE = frozenset(
    """king queen prince princess duke duchess count countess emperor empress pope saint bishop poet athlete
    architect artist lawyer judge priest nun monk chef spy knight diplomat cyclist noble model coach
    pilot mayor general justice president minister governor senator chancellor secretary ambassador
    representative chairman emir imam rabbi caliph shogun khan elector wife husband widow son daughter
    child brother sister mother father consort heir claimant member citizen figure spouse resident
    analyst apprentice blacksmith bricklayer cook expert intern locksmith mechanic midwife nurse paramedic
    physician
    scholar student surgeon technician trainee vet critic soldier scientist physicist chemist mathematician
    engineer journalist politician""".split()
)
GROUPS = frozenset(
    """company war dynasty empire organization organisation newspaper magazine party league team club band
    school church army kingdom state republic corporation group union society institute academy journal
    battle ship railway line treaty conflict period era programme program tournament season election""".split()
)
"""Things with a beginning and an end that are nobody's life."""
PERSON_ENDINGS = ("er", "or", "ist", "ian", "man", "woman", "ess", "eer", "ant", "crat", "star", "maker")
NO_PEOPLE = frozenset(
    """river chapter number paper order member newspaper water center theater theatre tower letter computer
    motor quarter border harbor sector factor tensor cluster thriller chiller winter summer power layer
    water weather another other paper reactor tractor silver master trailer helicopter container counter
    shoulder plant restaurant variant floor door corner dinner offer matter server folder buffer parameter error
    mirror colour color""".split()
)

PREDICATES = {
    "known as": "also known as",
    "released as": "also known as",
    "born in": "place of birth",
    "born at": "place of birth",
    "born near": "place of birth",
    "born on": "date of birth",
    "died in": "place of death",
    "died at": "place of death",
    "died near": "place of death",
    "died on": "date of death",
    "married": "spouse",
    "married to": "spouse",
    "wed": "spouse",
    "died of": "cause of death",
    "died from": "cause of death",
    "studied at": "educated at",
    "graduated from": "educated at",
    "attended": "educated at",
    "enrolled at": "educated at",
    "enrolled in": "educated at",
    "educated in": "educated at",
}
"""What is said in several ways, by one name; an object that is a date makes "place" a "date"."""
