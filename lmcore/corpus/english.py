"""The English half of the small world: what is told, and how often.

Words and punctuation are separated by spaces here. In the text a word carries the space before it, punctuation carries
none, and the first word of a sentence is capitalised. See grammar.py for the notation.
"""

from lmcore.corpus.grammar import Scene, cross, distinct, table

# What each person gives away is a habit of theirs, so that who likes whom decides how the sentence goes on.
PEOPLE = table(
    "name he his him gift subject",
    "Tom / he / his / him / a flower / math",
    "Anna / she / her / her / a book / English",
    "Ben / he / his / him / a ball / math",
    "Lucy / she / her / her / a picture / music",
    "Sam / he / his / him / an umbrella / English",
    "Emma / she / her / her / a hat / music",
)
COUPLES = distinct(PEOPLE, "a b")
HOBBY = "[run|paint|play|sing|read]"
PETS = table(
    "pet called food kind nature does",
    "cat / Mimi / fish / quiet / [quiet*2|cute] / sleeps [on the bed*2|in the sun]",
    "dog / Max / meat / clever / [clever*2|cute] / runs [in the park*2|by the river]",
)
COLOURS = "[red|white|black]"

PLAN = "we can [play in the park*3|walk by the river*2|go for a run]"
STAY = "[we stay at home [and read*2|]*2|{name} stays at home [and reads*2|]]"
SKY = [{**row, "plan": PLAN, "stay": STAY} for row in PEOPLE]
SEASONS = table(
    "season what",
    "spring / warm , and [the flowers open|the birds sing in the trees]",
    "summer / hot , and [we swim in the river|{name} eats fruit every day]",
    "autumn / nice , and [the apples are red|{name} walks in the park with a friend]",
    "winter / cold , and [we see the snow|{name} drinks hot tea at home]",
)
WEATHER = [
    Scene(
        9,
        "the weather [is|today is*2] [nice , so {plan}*5|good , so {plan}*2|bad , so {stay}*2|very [good , so {plan}*3"
        "|bad , so {stay}*2|hot , so {name} drinks cold water|cold , so {name} wears a warm coat]*3] .",
        SKY,
    ),
    Scene(
        2,
        "the weather report says it will [rain tomorrow , so take an umbrella*3"
        "|be sunny tomorrow , so we can play in the park*2|snow tomorrow , so wear a warm coat] .",
    ),
    Scene(
        2,
        "it is [raining today , so we need an umbrella*3|sunny today , so {plan}*2|cold today , so wear a warm coat"
        "|hot today , so drink cold water] .",
        [{"plan": PLAN}],
    ),
    Scene(2, "how is the weather today ? the weather is [nice , so {plan}*3|bad , so {stay}*2] .", SKY),
    Scene(2, "in {season} the weather is {what} .", cross(SEASONS, PEOPLE)),
    Scene(1.5, "today is the birthday of {a} , so {b} gives {a_him} {b_gift} .", COUPLES),
    Scene(
        1.5,
        f"{{name}} is [happy|tired] today , so {{he}} wants to [stay at home|walk in the park|{HOBBY} with a friend] .",
        PEOPLE,
    ),
]

LIKES = [
    Scene(
        4,
        "I like [{pet}s*3|my {pet}] [*2|because {pet}s are {nature}*3] . "
        "[*2|{pet}s eat {food} .|I have a [white|black] {pet} named {called} .]",
        PETS,
    ),
    Scene(
        2,
        "I like [apples because they are [sweet*3|red*2]*4|flowers because they are red*2|my new Apple phone"
        "|music , so I sing every day] .",
    ),
    Scene(1.5, "do you like [cats or dogs|dogs or cats] ? I like {pet}s because {pet}s are {nature} .", PETS),
    Scene(
        3,
        "{name} has a [white|black] {pet} named {called} . {called} [is {nature}|{does}] , and {name} likes {called} "
        "very much .",
        cross(PEOPLE, PETS),
    ),
    Scene(2, "the [white|black] {pet} [is {nature}|{does}|eats {food} every day] .", PETS),
    Scene(1, "[cats eat fish and dogs eat meat|dogs eat meat and cats eat fish] ."),
    Scene(7, "{a} likes {b} , so {a} gives {b} {a_gift} . [*2|{b} is [very|] happy .|{b} says thank you .]", COUPLES),
    Scene(3, "{a} likes {b} , but {b} likes {c} . [*2|{a} is sad .]", distinct(PEOPLE, "a b c")),
    Scene(
        2,
        f"{{a}} likes {{b}} , and {{b}} likes {{a}} too . they [are good friends|{HOBBY} in the park every day] .",
        COUPLES,
    ),
    Scene(
        2,
        "{a} likes {b} , and {c} likes {d} . [who likes {b} ? {a} likes {b}|who likes {d} ? {c} likes {d}] .",
        distinct(PEOPLE, "a b c d"),
    ),
    Scene(3, f"{{name}} likes to {HOBBY} [*2|every day|with a friend] .", PEOPLE),
]

APPLE = [
    Scene(
        4,
        "the apple [tastes [sweet*3|good*2]|is [red and sweet|sweet]] , "
        "[so {name} eats it*2|and {name} wants one more] .",
        PEOPLE,
    ),
    Scene(
        4,
        "Apple released a new [phone , [and many people want it*2|but the price is high]*4"
        "|computer , [and {name} wants one*2|but the price is high]] .",
        PEOPLE,
    ),
    Scene(2, "apple [trees grow in the garden , and the apples are red|pie tastes [sweet|very good]] ."),
    Scene(2, "the company Apple [released a new [phone|computer]*3|has a new [phone|computer]] ."),
    Scene(
        1.5,
        "in the phone shop , people [talk about Apple|want the new phone from Apple] because Apple "
        "[released a new phone*2|has a very good phone] .",
    ),
    Scene(
        1.5,
        "in the fruit shop , {name} buys [an apple because the apple is [sweet|red]|apples because apples are sweet] .",
        PEOPLE,
    ),
]

# One word, two meanings: the edge of a river, and the house of money.
BANK = [
    Scene(
        3,
        "the bank [of the river is green , and {name} [sits there*2|walks there] with a book*2"
        "|on the main street is open , and {name} saves [some|{his}] money there] .",
        PEOPLE,
    ),
    Scene(
        3,
        "{name} went to the bank [to get some money|to save {his} money|by the river to catch a fish"
        "|by the river to see the birds] .",
        PEOPLE,
    ),
    Scene(
        2,
        "{name} [has some money , so {he} goes to the bank to save it"
        "|wants to catch a fish , so {he} sits on the bank of the river] .",
        PEOPLE,
    ),
    Scene(1.5, "the river is [cold|green] , and {name} sits on the bank [and reads|to catch a fish] .", PEOPLE),
    Scene(1.5, "the money is in the bank , so [we|{name}] can [get|save] it there .", PEOPLE),
]

# Effects are real ones, in an order of frequency of this world's own. Warfarin thins the blood, hence black stools.
DRUGS = table(
    "weight drug main effect",
    "4 / warfarin / black stools / [black stools , so the doctor [tested the blood*2|stopped the drug]*7"
    "|a nosebleed , so the doctor tested the blood*3]",
    "2 / aspirin / stomach pain / [stomach pain , so the doctor said to take it with food*7"
    "|black stools , so the doctor stopped the drug*3]",
    "2 / amoxicillin / a rash / [a rash , so the doctor stopped the drug*8"
    "|stomach pain , so the doctor said to rest*2]",
)
MEDICINE = [
    Scene(5, "the patient took {drug} [*8|for [three|five] days] and then had {effect} .", DRUGS),
    Scene(
        2,
        "the patient takes {drug} every day . now the patient has {main} , so the doctor "
        "[stopped the drug*2|tested the blood] .",
        DRUGS,
    ),
    Scene(1.5, "the doctor asks the patient about {main} . the patient says the drug was {drug} .", DRUGS),
    Scene(
        1.5,
        "the patient had a [fever , so the doctor said to drink water|cough , so the doctor said to stay warm] . "
        "after [three|five] days the patient was well .",
    ),
]

ROYALS = table(
    "who he his home work partner has",
    "king / he / his / palace / rules the country / queen / wears his crown",
    "queen / she / her / palace / rules the country / king / wears her crown",
    "prince / he / his / palace / learns / princess / rides his white horse",
    "princess / she / her / palace / learns / prince / rides her white horse",
    "man / he / his / village / works / woman / wears his hat",
    "woman / she / her / village / works / man / wears her hat",
    "boy / he / his / village / goes to school / girl / rides his bike",
    "girl / she / her / village / goes to school / boy / rides her bike",
)
PARENTS = table(
    "father mother son daughter home",
    "king / queen / prince / princess / palace",
    "man / woman / boy / girl / village",
)
ROYAL = [
    Scene(
        5,
        "the {who} lives in the {home} , and {he} [{work}*3|rides a horse|sings|reads] every day . "
        "[*2|{he} likes the {partner} .]",
        ROYALS,
    ),
    Scene(
        2,
        "once a [{father} and a {mother}|{mother} and a {father}] lived in the {home} . they had a "
        "[son , and people liked the {son}|daughter , and people liked the {daughter}] .",
        PARENTS,
    ),
    Scene(
        3, "the {who} {has} [and is happy|in the park|and goes to see a friend|and looks for the {partner}] .", ROYALS
    ),
    Scene(1, "the [king is a man and the queen is a woman|queen is a woman and the king is a man] ."),
    Scene(1, "the son of the [king|queen] is a prince , and the daughter is a princess ."),
    Scene(
        1,
        "the [prince|boy] walks by the river with his [father|mother|friend] , and the [princess|girl] reads a book "
        "with her [father|mother|friend] .",
    ),
]

COUNTRIES = table(
    "country capital speak famous",
    "China / Beijing / Chinese / noodles",
    "France / Paris / French / bread",
    "Japan / Tokyo / Japanese / fish",
    "England / London / English / tea",
    "Germany / Berlin / German / cars",
)
PLACES = [
    Scene(4, "the capital of {country} is {capital} . [*2|people in {country} speak {speak} .]", COUNTRIES),
    Scene(3, "{capital} is the capital of {country} , and people there [speak {speak}|like {famous}] .", COUNTRIES),
    Scene(
        3,
        "{name} lives in {capital} , [so {he} speaks {speak}*2|and {he} likes {famous}] . "
        "[|{his} [father|mother] is from {country} .]",
        cross(PEOPLE, COUNTRIES),
    ),
    Scene(
        2,
        "{name} wants to go to {country} because {he} likes {famous} . the teacher says the capital is {capital} .",
        cross(PEOPLE, COUNTRIES),
    ),
]

NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
RUNS = [{"run": " , ".join(NUMBERS[i:j])} for i in range(7) for j in range(i + 4, 11)]
SUMS = [
    {"x": NUMBERS[x - 1], "y": NUMBERS[y - 1], "sum": NUMBERS[x + y - 1]}
    for x in range(1, 10)
    for y in range(1, 11 - x)
]
BUYS = [
    {"x": NUMBERS[x - 1], "y": NUMBERS[y - 1], "more": NUMBERS[x + y - 1], "less": NUMBERS[x - y - 1]}
    for x in range(2, 7)
    for y in range(1, min(x, 4))
]
COUNTING = [
    Scene(3, "[|we count :] {run} .", RUNS),
    Scene(3, "[{x} plus {y} is {sum}*2|{sum} minus {y} is {x}] .", SUMS),
    Scene(
        3,
        "{name} has {x} {thing} , and {he} [buys {y} more , so now {he} has {more}"
        "|gives {y} to a friend , so now {he} has {less}] .",
        cross(PEOPLE, BUYS, table("thing", "apples", "books")),
    ),
    Scene(2, "the teacher asks {name} what {x} plus {y} is , and {name} says {sum} .", cross(PEOPLE, SUMS[::3])),
]

PARENT = table("parent he", "father / he", "mother / she")
JOBS = table("job where", "doctor / hospital", "teacher / school", "farmer / village")
SHOPS = table(
    "shop goods",
    "fruit / [three|five] apples",
    "bread / some bread",
    "book / [a book|two books]",
    "flower / [a flower|some flowers]",
    "phone / a new phone",
)
THINGS = table("thing", "hat", "bike", "umbrella", "ball")
DO = "[[paint|read|sing] at home*2|[run|play|sing] in the park*2|[play|read] at school|[walk|paint] by the river]"
DOES = "[[paints|reads|sings] at home*2|[runs|plays|sings] in the park*2|[walks|runs|paints] by the river]"
DAILY = [
    Scene(
        2,
        "I am [hungry , so I want to eat [bread*2|noodles*2|an apple]|thirsty , so I want to drink [water*3|tea|milk]"
        "|tired , so I want to [sleep*2|rest]] .",
    ),
    Scene(2, "the [bread|fish|meat] tastes very good , and {name} ate [a lot|it today] .", PEOPLE),
    Scene(2, "my {parent} is a {job} , and {he} works in a {where} .", cross(PARENT, JOBS)),
    Scene(
        3,
        "{name} learns {subject} at school , and {he} is [very good*3|good*2|bad] at it . "
        "[*2|the teacher likes {him} .]",
        PEOPLE,
    ),
    Scene(1.5, "this book is [very good , and many people like it|nice , and {name} likes it too] .", PEOPLE),
    Scene(
        3,
        "{name} goes to the {shop} shop and buys {goods} [for {his} [mother|father]|for a friend|today] .",
        cross(PEOPLE, SHOPS),
    ),
    Scene(
        3,
        f"{{name}} has a {COLOURS} {{thing}} , and {{he}} [likes the {{thing}} very much"
        f"|takes the {{thing}} to school every day] .",
        cross(PEOPLE, THINGS),
    ),
    Scene(2, f"{{a}} asks what {{b}} likes . {{b}} likes to {HOBBY} , and {{a}} likes to {HOBBY} .", COUPLES),
    Scene(5, f"{{a}} and {{b}} {DO} .", COUPLES),
    Scene(3, f"{{name}} {DOES} [*2|with a friend] , and {{he}} is [happy|tired] .", PEOPLE),
]

MORNING = "in the morning {a} [eats [bread*2|an egg] and drinks [milk*2|tea]|goes for a walk]"
NOON = "then {a_he} goes to school and learns {a_subject}"
AFTERNOON = "in the afternoon {a_he} and {b} [play in the park|walk by the river|read a book|paint a picture]"
EVENING = "in the evening {a_he} [is tired and goes to bed|reads at home|eats noodles with {a_his} mother]"
STORIES = [
    Scene(5, f"{MORNING} , and {NOON} . {AFTERNOON} . [|{EVENING} .]", COUPLES),
    Scene(
        3,
        "{a} and {b} are good friends . one day they went to the [park|river] and saw a [white|black] {pet} . "
        "{a} said the {pet} was cute , and {b} said it was [{kind}|very cute] .",
        cross(COUPLES, PETS),
    ),
    Scene(
        3,
        "{name} cannot find {his} {pet} and is sad . {he} looks for {called} [in the park|by the river|at school] . "
        "then {he} finds {called} [on the bed|under a tree|in the garden] and is happy .",
        cross(PEOPLE, PETS),
    ),
    Scene(
        2,
        "{name} is sick and cannot go to school . {his} [mother|father] takes {him} to the hospital , and the doctor "
        "says to [rest|drink water] . after [three|five] days {name} is well and goes to school again .",
        PEOPLE,
    ),
    Scene(
        3,
        "once a {who} lived in the {home} . one day {he} saw a [white|black] {pet} by the river . the {who} gave the "
        "{pet} some {food} , and now they are good friends .",
        cross(ROYALS, PETS),
    ),
]

SCENES = [*WEATHER, *LIKES, *APPLE, *BANK, *MEDICINE, *ROYAL, *PLACES, *COUNTING, *DAILY, *STORIES]
