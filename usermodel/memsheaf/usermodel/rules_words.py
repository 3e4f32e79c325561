"""Word lists of the rules: data only."""

from __future__ import annotations

__all__ = ["WORDS"]


def _any(words: str) -> str:
    """Alternatives of a pattern, longest first; "_" stands for white space."""
    listed = sorted(words.split(), key=len, reverse=True)
    return "(?:" + "|".join(word.replace("_", r"\s+") for word in listed) + r")\b"


_LEVEL = (
    "just recently finally really absolutely totally definitely truly just_really actually also "
    "still always honestly genuinely particularly especially very so pretty quite kinda kind_of "
    "sort_of a_bit a_little super extremely mainly mostly personally generally usually completely "
    "fully now both strongly seriously deeply especially currently presently already"
)
_OFTEN = (
    "usually always often typically normally generally regularly frequently rarely seldom "
    "hardly_ever rarely_ever barely_ever"
)
_OCCUPATION = (
    "accountant actor actress administrator agent analyst anthropologist archaeologist architect "
    "archivist artist astronomer astronaut athlete attorney author baker banker barber barista "
    "bartender biochemist biologist blogger bookkeeper botanist bricklayer broadcaster broker "
    "builder butcher captain caregiver carer carpenter cartoonist cashier chef chemist "
    "chiropractor choreographer cleaner clerk coach coder columnist comedian composer conductor "
    "consultant contractor cook copywriter counsellor counselor critic curator dancer dba dentist "
    "dev designer detective developer dietitian director dj doctor doorman driver economist editor "
    "educator electrician engineer entrepreneur epidemiologist estate_agent farmer filmmaker "
    "firefighter fisherman florist founder freelancer gardener geographer geologist geophysicist "
    "goldsmith grocer guide hairdresser historian homemaker housewife illustrator inspector "
    "instructor interpreter inventor investor janitor jeweller journalist judge lab_technician "
    "landscaper lawyer lecturer librarian lifeguard linguist locksmith machinist magician manager "
    "marketer mason mathematician mechanic mediator merchant meteorologist microbiologist midwife "
    "miner minister model musician nanny neurologist neuroscientist notary novelist nurse "
    "nutritionist officer operator optician optometrist painter paralegal paramedic pastor "
    "pediatrician paediatrician personal_trainer pharmacist philosopher photographer physician "
    "physicist physiotherapist pianist pilot planner playwright plumber podcaster poet policeman "
    "politician porter postdoc potter priest principal producer professor programmer proofreader "
    "psychiatrist psychologist psychotherapist publisher rabbi radiologist realtor receptionist "
    "recruiter reporter researcher roofer sailor salesman salesperson saleswoman scientist "
    "screenwriter sculptor secretary singer social_worker sociologist soldier solicitor "
    "songwriter statistician stylist surgeon surveyor tailor teacher technician technologist "
    "tester therapist toolmaker trader trainer translator truck_driver tutor typist undergrad "
    "undergraduate veterinarian veteran vet videographer violinist vlogger waiter waitress "
    "warehouse_worker watchmaker weaver webmaster welder winemaker writer youtuber zoologist "
    "student freshman sophomore intern apprentice trainee phd_student retiree pensioner "
    "stay-at-home_mom stay-at-home_dad stay-at-home_mum stay-at-home_parent ceo cto cfo pm sre"
)
_IDENTITY = (
    "vegan vegetarian pescatarian pescetarian flexitarian omnivore lactose_intolerant "
    "lactose-intolerant gluten-free gluten_intolerant coeliac celiac diabetic hypoglycemic "
    "asthmatic epileptic anemic anaemic colour-blind color-blind colour_blind color_blind "
    "colourblind colorblind "
    "left-handed right-handed ambidextrous deaf blind dyslexic autistic neurodivergent gay "
    "lesbian bisexual queer transgender trans nonbinary non-binary asexual jewish muslim "
    "christian catholic protestant buddhist hindu sikh atheist agnostic mormon orthodox bilingual "
    "trilingual multilingual introverted extroverted retired unemployed self-employed freelance "
    "married divorced widowed american british english scottish welsh irish canadian australian "
    "german french spanish portuguese italian dutch belgian swiss austrian danish swedish "
    "norwegian finnish icelandic polish czech slovak hungarian romanian bulgarian greek turkish "
    "russian ukrainian belarusian estonian latvian lithuanian serbian croatian bosnian slovenian "
    "albanian macedonian israeli palestinian lebanese syrian iraqi iranian persian egyptian "
    "moroccan algerian tunisian nigerian ghanaian kenyan ethiopian somali south_african indian "
    "pakistani bangladeshi sri_lankan nepali chinese taiwanese japanese korean vietnamese thai "
    "filipino filipina indonesian malaysian singaporean mexican brazilian argentinian argentine "
    "chilean colombian peruvian venezuelan cuban jamaican dominican puerto_rican latino latina "
    "hispanic kiwi new_zealander sober teetotal dairy-free nut-free halal kosher keto sugar-free"
)
_ROLE = (
    "vegan vegetarian pescatarian introvert extrovert ambivert perfectionist minimalist "
    "morning_person night_owl early_bird early_riser people_person dog_person cat_person homebody "
    "foodie bookworm workaholic feminist pacifist atheist agnostic christian muslim catholic "
    "buddhist hindu mormon quaker twin triplet only_child non-smoker smoker teetotaller "
    "trans_woman trans_man transgender_woman transgender_man mom mum dad mother father parent "
    "single_mom single_mum single_dad single_parent stepmom stepdad grandmother grandfather "
    "grandparent widow widower orphan diabetic coeliac runner cyclist climber swimmer hiker gamer "
    "gardener birdwatcher knitter skateboarder surfer skier snowboarder marathoner triathlete "
    "native_speaker citizen immigrant expat polyglot vim_user emacs_user mac_user linux_user "
    "windows_user collector volunteer christian cellist guitarist drummer bassist flautist"
)
_PET = (
    "dog puppy pup cat kitten rabbit bunny hamster guinea_pig parrot budgie canary bird turtle "
    "tortoise fish goldfish horse pony ferret snake gecko lizard rat mouse gerbil chinchilla "
    "hedgehog chicken duck goat donkey labrador poodle beagle corgi husky dachshund retriever "
    "golden_retriever german_shepherd chihuahua terrier greyhound pug cockatiel"
)
_PETS = (
    "dogs puppies pups cats kittens rabbits bunnies hamsters guinea_pigs parrots budgies canaries "
    "birds turtles tortoises fish goldfish horses ponies ferrets snakes geckos lizards rats mice "
    "gerbils chinchillas hedgehogs chickens hens ducks goats donkeys pets"
)
_KEPT = (
    "dog puppy pup cat kitten hamster guinea_pig parrot tortoise horse pony ferret gecko "
    "dachshund labrador poodle beagle corgi husky golden_retriever german_shepherd chihuahua "
    "greyhound"
)
_PARTNER = "wife husband girlfriend boyfriend fiancé fiancée fiance fiancee spouse"
_RELATIVE = (
    "son daughter brother sister stepson stepdaughter stepbrother stepsister half-brother "
    "half-sister grandson granddaughter nephew niece twin_brother twin_sister older_brother "
    "older_sister younger_brother younger_sister big_brother big_sister little_brother "
    "little_sister toddler"
)
_RELATIVES = (
    "kids children sons daughters brothers sisters siblings twins grandchildren grandkids "
    "stepchildren nephews nieces"
)
_NUMBER = "a an one two three four five six seven eight nine ten several many another"
_LANGUAGE = (
    "english spanish french german portuguese italian dutch danish swedish norwegian finnish "
    "icelandic polish czech slovak hungarian romanian bulgarian greek turkish russian ukrainian "
    "arabic hebrew persian farsi urdu hindi punjabi bengali tamil telugu gujarati marathi nepali "
    "chinese mandarin cantonese japanese korean vietnamese thai tagalog indonesian malay swahili "
    "amharic yoruba zulu afrikaans catalan basque galician irish welsh gaelic latin esperanto "
    "serbian croatian slovenian albanian estonian latvian lithuanian armenian georgian mongolian "
    "sign_language asl bsl american_sign_language"
)
_CONDITION = (
    "asthma diabetes adhd add dyslexia epilepsy arthritis migraines anxiety depression insomnia "
    "autism celiac_disease coeliac_disease hypertension high_blood_pressure eczema psoriasis "
    "tinnitus ibs crohn's_disease type_1_diabetes type_2_diabetes ocd ptsd bipolar_disorder "
    "chronic_pain fibromyalgia endometriosis scoliosis hay_fever sleep_apnea chronic_fatigue"
)
_WEEK = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_UNIT = (
    "day morning afternoon evening night week weekend weekday month year summer winter spring "
    "autumn fall other_day other_week second_day monday tuesday wednesday thursday friday "
    "saturday sunday lunch_break"
)
_AIM = (
    "learn(?!_more|_about) become open launch own travel visit move live publish study improve "
    "lose quit_\\w+ing stop_\\w+ing run_a run_the run_my run_for retire help adopt buy_a_house "
    "buy_my master teach grow save reach achieve pursue inspire raise volunteer eat exercise "
    "sleep practise practice earn compete win qualify specialise specialize turn develop climb "
    "speak graduate be_an? be_more be_better be_able_to get_fit get_in_shape get_married "
    "get_better get_stronger get_healthier get_into get_my get_promoted get_certified get_more "
    "build_a_business build_my build_a_career build_a_family start_(?:an?|"
    "my)(?:_own)?(?:_[a-z-]+){0,2}_(?:business|company|studio|shop|store|family|band|blog|podcast|"
    "charity|career|garden|bakery|restaurant|channel|startup|farm|school) make_a_difference "
    "make_a_living make_music make_friends make_new_friends make_films make_games create_a_place "
    "create_a_safe create_a_space write_a_book write_a_novel write_books work_with work_as "
    "work_in work_for work_on give_back give_kids share_my spend_more spend_less drink_less "
    "drink_more cook_more read_more cut_down major contribute support take_up keep_making live_in "
    "expand have_a_family have_kids have_children run_marathons swim_across cycle hike play_the "
    "play_in perform train_for"
)
_ACTIVITY = (
    "play collect teach study drive own volunteer practise practice coach sing paint draw knit "
    "sew crochet garden cook bake cycle run swim dance climb surf ski hike meditate journal blog "
    "compose write photograph brew babysit commute homeschool smoke vape drink box fence "
    "skateboard snowboard podcast stream tutor mentor attend ride listen_to row sail fish hunt "
    "camp travel"
)
_VERB_FOR_ASSISTANT = (
    "answer reply respond use write format explain include add cite call address suggest "
    "recommend show translate avoid mention assume reformat quote provide output print return "
    "round convert summarise summarize apologise apologize sign greet refer speak talk offer "
    "include skip omit capitalise capitalize ask_me tell_me give_me send_me remind_me warn_me "
    "keep_answers keep_your_answers keep_replies keep_your_replies keep_responses "
    "keep_your_responses keep_it be_brief be_concise be_short be_honest be_direct run commit push "
    "delete make_up test"
)

_CAPITAL = r"(?-i:[A-Z\u00c0-\u00de][\w'.&-]+)"

WORDS = {
    "adv": rf"(?:{_any(_LEVEL)}\s+){{0,4}}",
    "am": rf"(?:{_any(_LEVEL)}\s+){{0,3}}(?:am|have(?:\s+{_any(_LEVEL)}){{0,3}}\s+been)"
    rf"(?:\s+{_any(_LEVEL)}){{0,3}}",
    "often": _any(_OFTEN),
    "occupation": rf"(?:{_any(_OCCUPATION)}|[\w-]+(?:ologist|ographer|neer))",
    "identity": _any(_IDENTITY),
    "role": _any(_ROLE),
    "pet": _any(_PET),
    "pets": _any(_PETS),
    "kept": _any(_KEPT),
    "partner": _any(_PARTNER),
    "relative": _any(_RELATIVE),
    "relatives": _any(_RELATIVES),
    "number": rf"(?:{_any(_NUMBER)}|\d{{1,2}})",
    "language": _any(_LANGUAGE),
    "condition": _any(_CONDITION),
    "unit": _any(_UNIT),
    "frequency": rf"(?:(?:every|each)(?: single| other)? {_any(_UNIT)}(?:(?:,| and) "
    rf"{_any(_UNIT)})*|daily|weekly|monthly|(?:once|twice|(?:{_any(_NUMBER)}|\d|a few|a "
    rf"couple(?: of)?|several) times) (?:a|per|every|each) {_any(_UNIT)}|on (?:weekends|weekdays|"
    rf"{_WEEK}s(?:(?:,| and) {_WEEK}s)*)|most (?:days|mornings|evenings|nights|weekends|weeks|"
    rf"afternoons))(?: (?:morning|evening|afternoon|night)s?)?",
    "aim": _any(_AIM),
    "activity": _any(_ACTIVITY),
    "assist": _any(_VERB_FOR_ASSISTANT),
    "Name": rf"{_CAPITAL}(?:\s+{_CAPITAL}){{0,2}}",
    "Place": rf"(?:the\s+)?{_CAPITAL}(?:(?:\s+|,\s+)(?:(?:of|de|la|le|el|the|am|upon|do|dos)\s+)*"
    rf"{_CAPITAL}){{0,3}}",
}
"""Pieces of the patterns, by the name that stands in braces there."""
