"""Closed word classes of English that tell a name from the words around it."""

_QUESTION = "who whom whose which what when where why how whether name give tell find list describe explain"
_PRONOUNS = """i he she it we they you him her them us me his hers its their theirs our ours your yours my
mine this that these those here there such one ones some any all both each either neither every many much
few several most more another other others none nobody nothing someone something anyone anything everyone
everything same"""
_VERBS = """is are was were be been being am do does did done has have had having can could will would shall
should may might must let"""
_PREPOSITIONS = """about above according across after against along alongside amid among around as at before
behind below beneath beside besides between beyond by despite down during except following for from given in
including inside into like near of off on onto out outside over past per regarding since through throughout
till to toward towards under until unlike up upon via with within without"""
_CONJUNCTIONS = "and or but nor so yet if because although though while whereas unless than once thus hence"
_ADVERBS = """also then now later earlier soon often sometimes usually generally however therefore moreover
furthermore additionally meanwhile nevertheless nonetheless instead otherwise originally initially
previously formerly currently recently subsequently eventually finally ultimately today tomorrow yesterday
still again ever never not no yes only just even almost nearly approximately first second third last next"""

ARTICLES = frozenset({"a", "an", "the"})
FUNCTION_WORDS = ARTICLES | frozenset(
    " ".join((_QUESTION, _PRONOUNS, _VERBS, _PREPOSITIONS, _CONJUNCTIONS, _ADVERBS)).split()
)
PREPOSITIONS = frozenset(_PREPOSITIONS.split())

# Lower-case words that stand inside names: "Bank of England", "Ludwig van Beethoven", "Rio de Janeiro".
NAME_PARTICLES = frozenset(
    """of de del della delle dei di da das do dos du des la le les el los las y et und van von der den ten ter zu
    zum zur af av bin ibn al bint 'n n'""".split()
)
CALENDAR_WORDS = frozenset(
    """january february march april may june july august september october november december jan feb mar apr jun
    jul aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mondays tuesdays
    wednesdays thursdays fridays saturdays sundays""".split()
)
# "London-based": the name is what stands before.
ADJECTIVE_SUFFIXES = frozenset(
    "based born led style wide like era speaking language themed owned winning listed made trained built".split()
)
